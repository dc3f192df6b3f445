#!/bin/sh
# Throws darts at a square and counts those inside the quarter circle: π/4 of them. Usage: pi.sh SEED; reads pi.conf.
set -eu
awk -v seed="$1" '
  $1 == "throws" { throws = $2 }
  END {
    srand(seed * 7919 + 1)
    for (i = 0; i < throws; i++) {
      x = rand(); y = rand()
      if (x * x + y * y <= 1) inside++
    }
    print inside + 0, throws
  }' pi.conf >hits.txt
echo "seed $1: $(cat hits.txt)"
