#!/bin/sh
# Descends (x - 2)^2 from 0 by steps of the size in $1.
awk -v lr="$1" 'BEGIN { for (i = 0; i < 20; i++) x -= lr * 2 * (x - 2); printf "x=%.3f\n", x }'
