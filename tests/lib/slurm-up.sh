#!/bin/bash
# slurm-up.sh - a small, real Slurm of two nodes on this one machine, with PMIx, for tests
#
# Prints the environment to use it. Controller and nodes have a host name, processes and a network of
# their own, joined by a bridge in the controller's network: the machine's own is not touched, so two
# clusters at once do not meet. Commands run as `$SLURM_RUN srun ...`. slurm-down.sh ends it.
#
# Environment: SLURM_ROOT  everything the cluster writes: full path, all may enter (munge demands it)
#              (in it, local/ is a disk of each node's own)
#              NODES CPUS GPUS   number of nodes n1, n2 ..; CPUs and made-up GPUs of each (2, 4, 4)
# Exit: 77 this machine cannot (no root, no namespaces, no Slurm), the reason on stderr; 1 it failed.
set -euo pipefail

SLURM_ROOT=${SLURM_ROOT:?}
NODES=${NODES:-2} CPUS=${CPUS:-4} GPUS=${GPUS:-4} PORT=26817 SUBNET=10.231.7
PATH=/usr/sbin:/sbin:$PATH
HERE=$(dirname "$(readlink -f "$0")")

die() { echo "slurm-up: $*" >&2; exit 1; }
cannot() { echo "$*" >&2; exit 77; }
say() { printf 'slurm-up: %s\n' "$*" >&2; }

[ "$(id -u)" = 0 ] || cannot "a test cluster needs root"
for c in munged slurmctld slurmd srun ip nsenter; do
    command -v $c >/dev/null || cannot "$c is not installed"
done
unshare --uts --pid --fork --mount --mount-proc --net true 2>/dev/null ||
    cannot "namespaces cannot be made here"
[ ! -e "$SLURM_ROOT/pids" ] || die "$SLURM_ROOT is in use: run slurm-down.sh first"
case $SLURM_ROOT in /*/?*) ;; *) die "SLURM_ROOT must be a full path, two levels deep or more" ;; esac
mkdir -p "$SLURM_ROOT"

# --- files --------------------------------------------------------------------
R=$SLURM_ROOT
rm -rf "${R:?}"/{ctld,log,munge,fakegpu}
umask 022
mkdir -p "$R"/{etc,munge,ctld,log,fakegpu,local}
for ((i = 0; i < GPUS; i++)); do mknod -m 666 "$R/fakegpu/gpu$i" c 1 3; done
(umask 077; head -c 128 /dev/urandom >"$R/munge/key")

ctl_addr=$SUBNET.1
nodes=() node_lines='' gres_lines=''
for ((i = 1; i <= NODES; i++)); do
    n=n$i nodes+=("n$i")
    rm -rf "${R:?}"/{spool,tmp}-"$n"
    mkdir "$R"/{spool,tmp}-"$n"
    chmod 1777 "$R/tmp-$n"
    addr=$SUBNET.$((10 + i))
    node_lines+="NodeName=$n NodeHostname=$n NodeAddr=$addr Port=$((PORT + 1 + i)) CPUs=$CPUS"
    if [ $GPUS -gt 0 ]; then
        node_lines+=" Gres=gpu:fake:$GPUS"
        # A gpu entry without File= counts as 0 devices and drains the node, so
        # each made-up GPU has a device node of its own, which is /dev/null's.
        gres_lines+="NodeName=$n Name=gpu Type=fake File=$R/fakegpu/gpu[0-$((GPUS - 1))]"$'\n'
    fi
    node_lines+=" State=UNKNOWN"$'\n'
done

cat >"$R/etc/slurm.conf" <<E
ClusterName=test
SlurmctldHost=ctl($ctl_addr)
SlurmctldPort=$PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# cred_expire: a requeued job waits this long + 1 s, instead of two minutes
AuthInfo=socket=$R/munge/sock,cred_expire=5

StateSaveLocation=$R/ctld
SlurmctldPidFile=$R/ctld/pid
SlurmctldLogFile=$R/log/slurmctld.log
SlurmdSpoolDir=$R/spool-%n
SlurmdPidFile=$R/spool-%n/pid
SlurmdLogFile=$R/log/slurmd-%n.log
# The PMIx plugin makes TmpFS/spmix_appdir_<uid>_<job>.<step> on every node:
# one TmpFS for two nodes of one machine fails with "File exists (17)".
TmpFS=$R/tmp-%n

# Nothing here needs cgroups (see also cgroup.conf).
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$R/log/jobcomp.txt

SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
${gres_lines:+GresTypes=gpu}
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
# Short, as befits a test: a dead node is seen and a killed job gone in seconds.
SlurmdTimeout=10
KillWait=3
UnkillableStepTimeout=10
MinJobAge=600
SchedulerParameters=sched_interval=2,batch_sched_delay=0

${node_lines}PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
E
printf '%s' "$gres_lines" >"$R/etc/gres.conf"
# slurmd always loads a cgroup plugin, and to find which looks at what is mounted
# on /sys/fs/cgroup, failing if nothing is.  Named outright, v1 touches nothing.
echo 'CgroupPlugin=cgroup/v1' >"$R/etc/cgroup.conf"
# The default picks 'tree' for a fence without data, and that one is no barrier
# between nodes: it returns when the local ranks are there.  'ring' is one.
echo 'PMIxCollFence=ring' >"$R/etc/mpi.conf"

# --- daemons ------------------------------------------------------------------
# Each stays in the foreground, started by us, its pid and start time noted in
# $R/pids ("name pid starttime") so that slurm-down.sh ends these and no others.
export SLURM_CONF=$R/etc/slurm.conf
started() { awk '{sub(/.*\) /, ""); if ($1 != "Z") print $20}' /proc/$1/stat 2>/dev/null || :; }
note() { echo "$1 $2 $(started $2)" >>"$R/pids"; }
trap '"$HERE/slurm-down.sh"' EXIT # until all is up

setsid munged --foreground --key-file="$R/munge/key" --socket="$R/munge/sock" --pid-file="$R/munge/pid" \
    --log-file="$R/munge/log" --seed-file="$R/munge/seed" --num-threads=2 >"$R/log/munged.out" 2>&1 </dev/null &
note munged $!

# A node: own host name, own process space (so that it ends whole when its first
# process does), own mounts, and in netns mode own network.  The shell inside is
# that first process; it starts the daemon once told to, and reaps orphans.
boot() { # boot NAME COMMAND...: sets PID
    local name=$1; shift
    mkfifo "$R/go-$name"
    setsid unshare --uts --pid --fork --kill-child --mount --mount-proc --net \
        bash -c 'hostname "$0"; mount -t tmpfs local "$1"; read -r _ <"$2"; shift 2; "$@" & wait $!' \
        "$name" "$R/local" "$R/go-$name" "$@" \
        >"$R/log/$name.out" 2>&1 </dev/null &
    PID=$!
    note "$name" $PID
}
go() { timeout 5 sh -c 'echo go >"$0"' "$R/go-$1"; rm -f "$R/go-$1"; }
# Whether the new namespaces are there: unshare has a child, of another host name space.
ready() { local k; for ((k = 0; k < 500; k++)); do
        child=$(cat /proc/$1/task/$1/children 2>/dev/null); child=${child%% *}
        [ -n "$child" ] && [ "$(readlink /proc/$child/ns/uts)" != "$(readlink /proc/self/ns/uts)" ] && return
        sleep 0.01; done; die "namespaces of pid $1 did not come up"; }
in_net() { local pid=$1; shift; nsenter --net=/proc/$pid/ns/net -- "$@"; }

boot ctl slurmctld -D; ctl_pid=$PID; ready $ctl_pid
in_net $ctl_pid ip link set lo up
in_net $ctl_pid ip link add br0 type bridge
in_net $ctl_pid ip addr add $SUBNET.1/24 dev br0
in_net $ctl_pid ip link set br0 up
for n in "${nodes[@]}"; do
    i=${n#n}
    boot $n slurmd -D; ready $PID
    in_net $ctl_pid ip link add v$i type veth peer name eth0 netns $PID
    in_net $ctl_pid ip link set v$i master br0 up
    in_net $PID ip link set lo up
    in_net $PID ip addr add $SUBNET.$((10 + i))/24 dev eth0
    in_net $PID ip link set eth0 up
done
for ((k = 0; k < 500; k++)); do [ -S "$R/munge/sock" ] && break; sleep 0.01; done
for n in ctl "${nodes[@]}"; do go $n; done

# The wrapper for Slurm's commands.
net_arg="nsenter --net=/proc/$ctl_pid/ns/net -- "
cat >"$R/run" <<E
#!/bin/sh
SLURM_CONF=$R/etc/slurm.conf; export SLURM_CONF
exec $net_arg"\$@"
E
chmod 755 "$R/run"

# Up once every node is idle; before that a job would wait for the next cycle.
# A client whose controller is not there asks on for minutes: hence timeout, and a
# look at whether all we started still runs.
end=$((SECONDS + 30)) idle=0
while [ $idle != $NODES ]; do
    while read -r name pid start; do
        [ "$(started $pid)" = "$start" ] || { tail -n 3 "$R/log/$name.out" >&2; die "$name ended"; }
    done <"$R/pids"
    [ $SECONDS -lt $end ] || { tail -n 3 "$R"/log/*.out >&2; die "only $idle of $NODES nodes idle after 30 s"; }
    sleep 0.05
    idle=$(timeout 5 "$R/run" sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l) || idle=0
done
say "$NODES nodes idle"

trap - EXIT

cat <<E
export SLURM_ROOT=$R
export SLURM_CONF=$R/etc/slurm.conf
export SLURM_RUN=$R/run
E
