#!/usr/bin/env bats
# the program's first words: subcommands, options, help, and what a mistake is answered with

setup() {
    dir=$(mktemp -d)
    sl="$builddir/shardlaunch"
    cd "$dir" || exit 1
}

teardown() {
    rm -rf "$dir"
}

apart() {
    run bash -c '"$@" 2>said' -- "$@"
}

@test "no words: the usage on stderr, status 2" {
    apart "$sl"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    grep -q '^usage: shardlaunch JOB.toml' said
}

@test "help lists every subcommand that is not hidden, on stdout" {
    apart "$sl" --help
    [ "$status" -eq 0 ]
    [ ! -s said ]
    [[ $output == *"  check "* ]]
    [[ $output == *"  version "* ]]
    [[ $output != *"  rank "* ]]
    whole=$output
    for way in -h help; do
        apart "$sl" $way
        [ "$status" -eq 0 ]
        [ "$output" = "$whole" ]
    done
}

# The subcommands that help lists; none is a failure of the test itself.
listed() {
    "$sl" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >listed
    [ "$(wc -l <listed)" -ge 2 ]
}

@test "each listed subcommand has a help of its own, within 79 columns" {
    listed
    for cmd in $(cat listed); do
        apart "$sl" "$cmd" --help
        [ "$status" -eq 0 ]
        [[ ${lines[0]} == "usage: shardlaunch $cmd"* ]]
        [[ $output == *"--help"* ]]
        own=$output
        apart "$sl" help "$cmd"
        [ "$output" = "$own" ]
        [ -z "$(echo "$own" | grep -n '.\{80\}')" ] || { echo "$own"; false; }
    done
}

@test "every option in a help text is one that the parser takes" {
    listed
    for cmd in $(cat listed); do
        "$sl" "$cmd" --help | sed -n 's/^  \(-., \)\{0,1\}--\([a-z-]*\).*/\2/p' >opts
        grep -qx help opts
        for opt in $(cat opts); do
            run "$sl" "$cmd" "--$opt=x" --surely-unknown
            [[ $output != *"unknown option \"--$opt\""* ]]
        done
    done
}

@test "a version, three ways and as JSON" {
    apart "$sl" version
    [ "$status" -eq 0 ]
    [[ $output =~ ^shardlaunch\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    line=$output
    apart "$sl" --version
    [ "$output" = "$line" ]
    apart "$sl" version --json
    [ "$output" = "{\"version\":\"${line#shardlaunch }\"}" ]
}

@test "a misspelt subcommand and a misspelt option get their nearest" {
    apart "$sl" chekc x.toml
    [ "$status" -eq 2 ]
    [ "$(cat said)" = 'shardlaunch: "chekc" is neither a subcommand nor a job file
hint: Did you mean "check"?' ]
    apart "$sl" check --jsno x.toml
    [ "$status" -eq 2 ]
    [ "$(cat said)" = 'shardlaunch: check: unknown option "--jsno"
hint: Did you mean "--json"?' ]
    apart "$sl" check -q x.toml
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: check: unknown option "-q"' ]
}

@test "an option before the job file: where options go" {
    apart "$sl" --set train.lr=1 x.toml
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: unknown option "--set" before a subcommand' ]
    [[ $(tail -n1 said) == "hint: Options follow the job file"* ]]
}

@test "a state folder that cannot be made: which, and how to name another" {
    : >file
    printf '[model]\nlayers=1\nheads=1\nwidth=8\ncontext=8\n[data]\ntrain="t"\n[train]\nsteps=1\nbatch=1\nlr=1\n' >a.toml
    SHARDLAUNCH_DB= SHARDLAUNCH_STATE="$dir/file/state" apart "$sl" run a.toml
    [ "$status" -eq 5 ]
    [[ $(head -n1 said) == *"/file/state/shardlaunch.db\": "* ]]
    [[ $(tail -n1 said) == *SHARDLAUNCH_STATE* ]]
}

@test "operands are counted and values are required" {
    apart "$sl" check
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: check: needs JOB.toml' ]
    apart "$sl" check a b
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: check: "b" is one too many: it takes JOB.toml' ]
    apart "$sl" check a --set
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: check: --set needs a value: --set=KEY=VALUE' ]
    apart "$sl" check a --json=yes
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: check: --json takes no value' ]
    apart "$sl" version now
    [ "$status" -eq 2 ]
    [ "$(head -n1 said)" = 'shardlaunch: version: "now" is not wanted: it takes options only' ]
}

@test "behind -- a word that looks like an option is an operand" {
    apart "$sl" check -- --json
    [ "$status" -eq 2 ]
    [ "$(cat said)" = 'shardlaunch: open "--json": No such file or directory' ]
}

@test "a job file as the first word is run" {
    printf 'x = 1\n' >a.toml
    cp a.toml plain
    for file in a.toml plain; do
        SHARDLAUNCH_STATE="$dir/state" apart "$sl" "$file"
        [ "$status" -eq 2 ]
        [ "$(head -n1 said)" = "shardlaunch: $file:1:1: unknown key \"x\"" ]
    done
    SHARDLAUNCH_STATE="$dir/state" apart "$sl" none.toml
    [ "$status" -eq 2 ]
    [[ $(cat said) == *'"none.toml": No such file or directory'* ]]
}

@test "escapes in words do not reach the terminal" {
    apart "$sl" "$(printf 'x\033[2J')"
    [ "$status" -eq 2 ]
    [ -z "$(tr -cd '\033' <said)" ]
}
