#!/bin/bash
# slurm-down.sh - end what slurm-up.sh started, by the pids it noted, and nothing
# else.  State and logs stay in $SLURM_ROOT unless called with --purge.
set -uo pipefail

SLURM_ROOT=${SLURM_ROOT:?}
R=$SLURM_ROOT
[ -e "$R/pids" ] || { echo "slurm-down: nothing runs under $R" >&2; exit 0; }

# True if that pid is still the process that was noted: same start time.
ours() { [ "$(awk '{sub(/.*\) /, ""); if ($1 != "Z") print $20}' "/proc/$1/stat" 2>/dev/null)" = "$2" ]; }

# Jobs first: an srun whose controller is gone keeps asking for it for minutes.
if [ -x "$R/run" ] && timeout 5 "$R/run" scancel -p test 2>/dev/null; then
    for ((k = 0; k < 50; k++)); do
        [ -z "$(timeout 5 "$R/run" squeue -h 2>/dev/null)" ] && break
        sleep 0.1
    done
fi

# Last started, first ended.  What is noted for a node or the controller is the
# unshare in front of it, which blocks TERM; when it is killed the kernel kills
# all in its pid namespace (--kill-child), job steps included.  The network
# namespaces, the bridge and the veth pairs go with their last process.
mapfile -t lines < <(tac "$R/pids")
for last in no yes; do
    for l in "${lines[@]}"; do
        read -r name pid start <<<"$l"
        sig=KILL
        case $last$name in nomunged) sig=TERM ;; esac
        ours "$pid" "$start" && kill -$sig "$pid"
    done
    for ((k = 0; k < 50; k++)); do
        left=
        for l in "${lines[@]}"; do
            read -r name pid start <<<"$l"
            ours "$pid" "$start" && left+=" $name($pid)"
        done
        [ -z "$left" ] && break 2
        sleep 0.1
    done
done
[ -z "$left" ] || { echo "slurm-down: still there:$left" >&2; exit 1; }
rm -f "$R/pids" "$R/run" "$R"/go-* "$R/munge/sock" "$R/munge/sock.lock"
[ "${1:-}" = --purge ] && rm -rf "$R"
echo "slurm-down: ${#lines[@]} daemons ended" >&2
