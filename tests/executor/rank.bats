#!/usr/bin/env bats
# Ranks of a real run: what they report, and how they end when the numbers do.

load ../lib/common.bash

setup() {
    command -v sqlite3 >/dev/null || skip "sqlite3 is not installed"
    sl_setup
    sl_text "$BATS_TEST_TMPDIR/text" 6000
    job=$BATS_TEST_TMPDIR/job.toml
    sl_job "$job" "$BATS_TEST_TMPDIR/text"
}

train() { "$SL" run "$job" --no-web "$@" 2>&1; }

newest="(SELECT max(id) FROM jobs)"

@test "losses and raw norms of a run are the same bits in every strategy" {
    for s in dp ddp zero1 zero2 zero3; do
        run train --ranks 3 --strategy $s --set train.steps=4 --set train.grad_clip=0.5
        [ "$status" -eq 0 ]
        sql "SELECT step, rank, printf('%.17g', loss) FROM rank_throughput WHERE job = $newest ORDER BY 1, 2;
             SELECT step, name, printf('%.17g', value) FROM metrics WHERE job = $newest ORDER BY 1, 2" >"$BATS_TEST_TMPDIR/$s"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/$s")" -eq $((3 * 4 + 4 * 2 + 1)) ] # losses; lr and norm; valid.loss
        cmp "$BATS_TEST_TMPDIR/$s" "$BATS_TEST_TMPDIR/dp"
    done
}

@test "a rank reports its share of the tokens, and no more waiting than the step is long" {
    run train --ranks 2 --set train.steps=3 --set train.micro_batch=2
    [ "$status" -eq 0 ]
    [ "$(sql "SELECT count(*), sum(units) FROM rank_throughput WHERE job = $newest")" = "6|$((3 * 12 * 16)).0" ]
    [ "$(sql "SELECT count(*) FROM rank_throughput WHERE job = $newest AND comm_ms + data_ms > step_ms")" -eq 0 ]
    [ "$(sql "SELECT count(*) FROM rank_throughput WHERE job = $newest AND unit <> 'tokens'")" -eq 0 ]
}

@test "bf16 trains near fp32" {
    run train --ranks 2 --set train.steps=4
    [ "$status" -eq 0 ]
    run train --ranks 2 --set train.steps=4 --set train.precision=bf16
    [ "$status" -eq 0 ]
    [ "$(sql "SELECT abs(a.loss / b.loss - 1) < 0.01 AND a.loss <> b.loss FROM rank_throughput a, rank_throughput b
              WHERE a.job = 1 AND b.job = 2 AND a.rank = 0 AND b.rank = 0 AND a.step = 4 AND b.step = 4")" = 1 ]
}

@test "a run that diverges fails with 1, and says in which step, on which rank, in which tensor" {
    run train --ranks 2 --set train.steps=50 --set train.lr=1000 --set train.weight_decay=1
    [ "$status" -eq 1 ]
    [[ "$output" == *"gradient norm nan on rank "*", first in the gradient of \"wte.weight\""* ]]
    [ "$(sql "SELECT state, exit_status FROM jobs WHERE id = $newest")" = "failed|1" ]
    [ "$(sql "SELECT count(*) FROM events WHERE job = $newest AND kind = 'nan'")" -eq 1 ]
}
