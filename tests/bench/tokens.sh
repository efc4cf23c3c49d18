#!/bin/sh
# usage: tokens.sh COUNT VOCAB: COUNT made-up uint16 tokens below VOCAB on stdout, always the same ones
awk -v n="$1" -v v="$2" 'BEGIN { x = 1
    for (i = 0; i < n; i++) { x = (x * 1103515245 + 12345) % 2147483648; t = int(x / 77) % v; printf "%02x%02x", t % 256, int(t / 256) } }' |
    xxd -r -p
