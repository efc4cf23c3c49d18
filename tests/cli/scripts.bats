#!/usr/bin/env bats
# script/test and script/demo: what they count, and what they say where they cannot go on

# A tree with the real scripts, a build that does nothing, and a `make check` that leaves the results in
# $RESULTS and the words in $WORDS, as automake's TAP driver does.
setup() {
    cd "$BATS_TEST_TMPDIR" || exit 1
    mkdir -p tree/script/lib tree/build/tests
    cp "$srcdir/script/test" "$srcdir/script/demo" "$srcdir/script/packages" tree/script/
    cp "$srcdir/script/lib/setup.sh" tree/script/lib/
    # Configures when there is no Makefile, as script/build does, and finds cmocka if FOUND is set.
    cat >tree/script/build <<END
#!/bin/sh
cd "$PWD/tree/build" || exit 1
[ -f Makefile ] || { cp ../../Makefile.new Makefile; [ -z "\${FOUND:-}" ] || : >config.status; }
exit "\${BUILD_STATUS:-0}"
END
    chmod +x tree/script/*
    printf 'check:\n\t@printf "$$RESULTS" >tests/x.trs; printf "$$WORDS" >tests/x.log; exit $${CHECK_STATUS:-0}\n' >Makefile.new
    cp Makefile.new tree/build/Makefile
    export SETUP=no SL_NO_SKIP=
    unset BUILD
}

@test "the last line is the sum of all results" {
    RESULTS=':test-result: PASS\n:test-result: PASS\n:test-result: SKIP\n' \
        WORDS='ok 1 - a\nok 2 - b\nok 3 - c # SKIP no gpu\n' run tree/script/test
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "2 passed, 0 failed, 1 skipped" ]
    [[ $output == *"tests/x: ok 3 - c # SKIP no gpu"* ]]
    [[ $output != *"ok 2 - b"* ]]
}

@test "failures and programs that died count as failed" {
    RESULTS=':test-result: PASS\n:test-result: FAIL\n:test-result: ERROR\n' \
        WORDS='ok 1 - a\nnot ok 2 - b\n' CHECK_STATUS=1 run tree/script/test
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "1 passed, 2 failed, 0 skipped" ]
    [[ $output == *"tests/x: not ok 2 - b"* ]]
}

@test "no test is a failure" {
    RESULTS='' run tree/script/test
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "0 passed, 1 failed, 0 skipped" ]
}

@test "results of an earlier run do not count" {
    printf ':test-result: PASS\n' >tree/build/tests/old.trs
    RESULTS='' run tree/script/test
    [ "$status" -eq 1 ]
}

@test "a make that failed without a failed test is a failure" {
    RESULTS=':test-result: PASS\n' CHECK_STATUS=1 run tree/script/test
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "1 passed, 1 failed, 0 skipped" ]
}

@test "a build that fails is a failure" {
    BUILD_STATUS=1 RESULTS=':test-result: PASS\n' run tree/script/test
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "0 passed, 1 failed, 0 skipped" ]
}

@test "unit tests that were left out are not passed over in silence" {
    printf 'S["HAVE_CMOCKA_TRUE"]="#"\n' >tree/build/config.status
    RESULTS=':test-result: PASS\n' run tree/script/test
    [ "${lines[-1]}" = "1 passed, 0 failed, 1 skipped" ]
    [[ $output == *"all unit tests"* ]]
}

@test "a tree configured without cmocka is configured again" {
    printf 'S["HAVE_CMOCKA_TRUE"]="#"\n' >tree/build/config.status
    FOUND=1 RESULTS=':test-result: PASS\n' run tree/script/test
    [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
}

@test "SL_NO_SKIP=1 makes a skip a failure" {
    SL_NO_SKIP=1 RESULTS=':test-result: PASS\n:test-result: SKIP\n' run tree/script/test
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "1 passed, 1 failed, 0 skipped" ]
}

@test "without apt both scripts name the packages and end with 5" {
    mkdir bin
    for tool in sh env sed sort dirname; do
        ln -s "$(command -v $tool)" bin/
    done
    for script in test demo; do
        SETUP= PATH=$PWD/bin run tree/script/$script
        [ "$status" -eq 5 ]
        [[ $output == *"no apt"* ]]
        [[ $output == *libpmix-dev* ]]
    done
    [[ $output == *bible-kjv* ]]
}

@test "missing packages without root and sudo: the command to give, and 5" {
    mkdir bin
    for tool in sh env sed sort dirname tr cat; do
        ln -s "$(command -v $tool)" bin/
    done
    printf '#!/bin/sh\nexit 1\n' >bin/apt-get
    printf '#!/bin/sh\nexit 1\n' >bin/dpkg-query
    printf '#!/bin/sh\necho 1000\n' >bin/id
    chmod +x bin/apt-get bin/dpkg-query bin/id
    SETUP= PATH=$PWD/bin run tree/script/demo
    [ "$status" -eq 5 ]
    [[ $output == *"apt-get install"*"bible-kjv"* ]]
}

@test "the demo takes no words, and its text is a file" {
    run tree/script/demo --help
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == "usage: "* ]]
    run tree/script/demo my.txt
    [ "$status" -eq 2 ]
    [[ $output == *"TEXT=FILE"* ]]
    mkdir -p folder tree/examples
    : >tree/examples/demo.toml
    for text in folder none; do
        TEXT=$text run tree/script/demo
        [ "$status" -eq 2 ]
        [ "${lines[-1]}" = "demo: TEXT=$text: no such file, or it cannot be read" ]
    done
}
