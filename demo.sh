#!/usr/bin/env bash
# What `make demo` shows: train on the built-in graph, score the embeddings, look at a node.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() { echo "\$ $*"; "$@"; echo; }
run spgcl inspect csbm-heterophilic
run spgcl fit csbm-heterophilic --steps 200 --set hidden=256 --out "$folder/demo"
run spgcl eval "$folder/demo"
run spgcl similar "$folder/demo" 0 -k 5
