#!/usr/bin/env bats
# the manual and the completions name what the program has: every option, key, view and column

setup() {
    dir=$(mktemp -d)
    cd "$dir" || exit 1
    sl="$builddir/shardlaunch"
    page1=$(made man/shardlaunch.1)
    page5=$(made man/shardlaunch.toml.5)
    completions=$(made share/completions/shardlaunch)
    # As text: no fonts, and a minus is a "-".
    sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' -e 's/\\&//g' "$page1" >"$dir/1"
    sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' -e 's/\\&//g' "$page5" >"$dir/5"
}

teardown() {
    rm -rf "$dir"
}

# Where it was made, or where a release has it.
made() {
    [ -f "$builddir/$1" ] && echo "$builddir/$1" || echo "$srcdir/$1"
}

subcommands() {
    "$sl" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$dir/subcommands"
    [ "$(wc -l <"$dir/subcommands")" -ge 9 ]
    cat "$dir/subcommands"
}

# section NAME: the lines of the page below the subcommand's heading
section() {
    awk -v name="$1" '/^\.S[SH]/ { on = $0 ~ "^\\.SS \"" name "[ \"]" } on' "$dir/1"
}

@test "shardlaunch(1) has every subcommand and, in its section, every option that its help lists" {
    all=$(subcommands)
    for cmd in $all; do
        section "$cmd" >part
        [ -s part ]
        "$sl" "$cmd" --help | sed -nE 's/^  (-., )?(--[a-z-]+).*/\1\2/p' | grep -v -- --help >opts || true
        [ "$(wc -l <opts)" -ge 1 ]
        while read -r opt; do
            grep -qE -- "^$opt(=.*)?\$" part || { echo "$cmd: no $opt"; false; }
        done <opts
        [ "$(grep -c '^\.TP' part)" -eq "$(wc -l <opts)" ]
    done
}

@test "hidden subcommands are not in the page" {
    ! grep -q '^\.SS "rank' "$dir/1"
}

@test "shardlaunch.toml(5) has every key of a job's canonical text, in its table" {
    cat >job.toml <<'END'
[model]
layers = 1
heads = 1
width = 8
context = 8
[data]
train = "t.txt"
[train]
steps = 1
batch = 1
lr = 0.1
END
    seq 1 400 >t.txt
    SHARDLAUNCH_STATE=$dir/state "$sl" run --no-web -q job.toml
    awk '/^\[/ { table = $1 } / = / { print table, $1 }' state/runs/1/job.toml >keys
    [ "$(wc -l <keys)" -ge 40 ]
    awk '/^\.SS/ { table = $2; gsub(/"/, "", table); if (table == "Before") table = "" }
         tp { print table, $1 } { tp = /^\.TP/ }' "$dir/5" >listed
    sed -i 's/^ //' listed keys
    while read -r key; do
        grep -qxF "$key" listed || { echo "no $key"; false; }
    done <keys
    # The rest are those that this version refuses.
    grep -vxFf keys listed >others
    while read -r table key; do
        table=${table#[} table=${table%]}
        run "$sl" check job.toml --set "$table.$key=\"x\""
        [ "$status" -eq 2 ]
        [[ $output == *"this version"* ]] || { echo "$table.$key: $output"; false; }
    done <others
}

@test "the views and columns in shardlaunch(1) are the database's" {
    command -v sqlite3 >/dev/null || skip "sqlite3 is not there"
    for view in jobs rank_memory rank_throughput metrics events; do
        sqlite3 :memory: <<END >want
.read $srcdir/store/schema.sql
select name from pragma_table_info('$view');
END
        [ "$(wc -l <want)" -ge 6 ]
        awk -v view="$view" '$0 == ".B " view && tp { on = 1; next } /^\.br/ { on = 0 }
                             on { print $2 } { tp = /^\.TP/ }' "$dir/1" >listed
        diff want listed
    done
}

@test "every exit status of the contract is listed once" {
    sed -n '/^\.SH "EXIT STATUS"/,/^\.SH ENV/s/^\.B \([0-9][0-9]*\).*/\1/p' "$dir/1" | tr '\n' ' ' >listed
    [ "$(cat listed)" = "0 1 2 3 4 5 6 75 128 " ]
}

@test "the pages' example is a job file that is right" {
    sed -n '/^\.SH EXAMPLES/,/^\.EE/p' "$dir/5" | grep -v '^\.' >job.toml
    [ "$(wc -l <job.toml)" -ge 15 ]
    "$sl" check job.toml
}

@test "groff has no warning about the pages" {
    command -v groff >/dev/null || skip "groff is not there"
    for page in "$page1" "$page5"; do
        run groff -ww -man -Tascii -z "$page"
        [ "$status" -eq 0 ]
        [ -z "$output" ]
    done
}

complete_at() { # WORD...: the last one is being typed
    COMP_WORDS=(shardlaunch "$@")
    COMP_CWORD=$#
    _shardlaunch
    printf '%s\n' "${COMPREPLY[@]}"
}

@test "completions: subcommands, options, values of options, keys of --set" {
    . "$completions"
    [ "$(complete_at ch)" = check ]
    all=$(subcommands)
    for cmd in $all; do
        [ "$(complete_at "$cmd" --hel)" = --help ]
        complete_at "" | grep -qx "$cmd"
    done
    [ "$(complete_at run --str)" = --strategy= ]
    [ "$(complete_at job.toml --strategy zero3)" = zero3 ]
    [ "$(complete_at run --strategy = zero3)" = zero3 ]
    [ "$(complete_at run -s train.warm)" = train.warmup= ]
    complete_at run --set checkpoint.ev | grep -qx checkpoint.every=
    ! complete_at run --set notify | grep -q .
}
