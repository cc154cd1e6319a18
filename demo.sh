#!/usr/bin/env bash
# What `make demo` shows: embed a built-in graph, score the vectors, find similar nodes, make the page.
set -euo pipefail
folder=runs/make-demo
run() { echo "\$ $*"; "$@"; echo; }
run spgcl inspect csbm-heterophilic
run spgcl fit csbm-heterophilic --out "$folder" --overwrite
run spgcl eval "$folder"
run spgcl similar "$folder" 0 -k 5
run spgcl report "$folder"
