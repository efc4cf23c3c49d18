#!/bin/sh
# The include arrows go one way: cli > web > scheduler > launcher > executor > kernels > store > common.
# The code keeps what script/check-style looks for, and that script finds what it should.
n=0
say() { # TEXT OUTPUT: passes when there is none
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"; else
        echo "not ok $n - $1"
        echo "$2" | sed 's/^/# /'
    fi
}
say "no include points up" "$("$srcdir/script/check-layers" "$srcdir")"
say "memory comes from common/mem.h, and no library prints or exits" "$("$srcdir/script/check-style" "$srcdir")"
dir=$(mktemp -d)
mkdir "$dir/common" "$dir/store" "$dir/kernels" "$dir/executor" "$dir/launcher" "$dir/scheduler" "$dir/web" "$dir/cli"
echo 'void *f(void) { return malloc(1); }' >"$dir/store/f.c"
"$srcdir/script/check-style" "$dir" >/dev/null && found=no || found=
rm -r "$dir"
say "a raw malloc is found" "$found"
echo "1..$n"
