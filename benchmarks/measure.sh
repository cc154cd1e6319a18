#!/usr/bin/env bash
# Measure what docs/speed.md shows on this machine: append to results/, then rewrite the tables. Takes hours.
#   bash benchmarks/measure.sh cuda|cpu [speed|memory|scale|walks|paired]...
# PYTHON chooses the interpreter, GRAPHS the graphs of `speed`.
set -euo pipefail
cd "$(dirname "$0")/.."
device=$1
shift
if [ $# = 0 ]; then set -- speed memory scale walks paired; fi
read -ra graphs <<<"${GRAPHS:-cora citeseer pubmed chameleon squirrel actor twitch-de amazon-photo \
amazon-computers coauthor-cs coauthor-physics}"
run() { "${PYTHON:-python}" "benchmarks/$1.py" "${@:2}"; }

for part in "$@"; do
  case $device-$part in
    cuda-speed)
      run bench speed "${graphs[@]}" --device cuda --precision tf32 --end-to-end
      run bench speed "${graphs[@]}" --device cuda --precision tf32 --end-to-end \
        --set batch_norm_rows=pool --methods spgcl --no-reference
      ;;
    cpu-speed)
      run bench speed "${graphs[@]}" --device cpu
      run bench speed cora chameleon coauthor-physics --device cpu --end-to-end --methods spgcl --no-reference
      ;;
    cuda-memory) run bench memory coauthor-cs coauthor-physics genius-size twitch-gamers-size --device cuda ;;
    cpu-scale) run bench scale --device cpu ;;
    cpu-walks) run bench walks amazon-computers --device cpu ;;
    cuda-paired) run paired --seeds 10 cora pubmed chameleon amazon-photo ;;
    cuda-scale | cuda-walks | cpu-memory | cpu-paired) ;; # only measured on the other device
    *) echo "unknown: $device $part" >&2; exit 2 ;;
  esac
done
run tables
