#!/usr/bin/env bash
# A throw-away Slurm cluster on loopback: real slurmdbd, slurmctld and several slurmd on one host, with cards that are only device files.
#
#   slurm-lab.sh install   Debian's packages, with no service started by them
#   slurm-lab.sh up        starts it in the folder $LAB and says its nodes
#   slurm-lab.sh down      ends what `up` started, by its pids, and removes the folder
#
# Needs root, but neither systemd nor a driver: Slurm only wants its devices to be character devices. Node gpuN has the cards
# (N-1)*$GPUS … N*$GPUS-1. Settings: LAB, NODES, GPUS, BASE (first of 10 + $NODES ports on 127.0.0.1), USERS (two that are made and removed),
# ENFORCE (which limits hold; with `safe` at its end, a limit that is lowered ends no running job).
set -euo pipefail
LAB=${LAB:-/tmp/slurm-lab}
NODES=${NODES:-2}
GPUS=${GPUS:-4}
BASE=${BASE:-16810}
ENFORCE=${ENFORCE:-associations,limits,qos}
read -r ALICE BOB <<<"${USERS:-labalice labbob}"
HOST=$(hostname -s)
SOCK=$LAB/run/munge/munge.socket
export SLURM_CONF=$LAB/etc/slurm.conf

install_packages() {
  local policy=/usr/sbin/policy-rc.d made=
  # Exit 101 keeps the packages' scripts from starting services.
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod 755 "$policy"; made=1; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    slurmctld slurmd slurm-client slurmdbd munge mariadb-server >/dev/null
  [ -z "$made" ] || rm -f "$policy"
}

# Starts a daemon and notes its pid.
spawn() {
  local name=$1
  shift
  setsid "$@" >"$LAB/log/$name.out" 2>&1 </dev/null &
  echo $! >"$LAB/run/$name.lab"
}

until_ok() {
  local tries=$1
  shift
  for _ in $(seq "$tries"); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.25
  done
  echo "gave up: $*" >&2
  return 1
}

port() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start_munge() {
  install -d -o munge -g munge -m 755 "$LAB/run/munge"
  install -d -o munge -g munge -m 700 "$LAB"/{log,etc}/munge
  (umask 077 && head -c 1024 /dev/urandom >"$LAB/etc/munge/munge.key")
  chown munge:munge "$LAB/etc/munge/munge.key"
  chmod 400 "$LAB/etc/munge/munge.key"
  spawn munged setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --socket="$SOCK" \
    --key-file="$LAB/etc/munge/munge.key" --pid-file="$LAB/run/munge/munged.pid" \
    --log-file="$LAB/log/munge/munged.log" --seed-file="$LAB/log/munge/munge.seed"
  until_ok 40 munge -S "$SOCK" -n
}

start_database() {
  install -d -o mysql -m 700 "$LAB/db"
  mariadb-install-db --no-defaults --user=mysql --datadir="$LAB/db" --auth-root-authentication-method=normal \
    --skip-test-db >"$LAB/log/mariadb-install.out" 2>&1
  spawn mariadbd mariadbd --no-defaults --user=mysql --datadir="$LAB/db" --socket="$LAB/db/m.sock" \
    --bind-address=127.0.0.1 --port=$((BASE + 3)) --pid-file="$LAB/db/m.pid" --innodb-buffer-pool-size=64M \
    --innodb-log-file-size=32M --innodb-lock-wait-timeout=900 --skip-log-bin
  until_ok 120 mariadb-admin --no-defaults -S "$LAB/db/m.sock" ping
  mariadb --no-defaults -S "$LAB/db/m.sock" -u root -e "CREATE DATABASE slurm_acct_db;
    CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurmpw'; GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';
    CREATE USER slurm@localhost IDENTIFIED BY 'slurmpw'; GRANT ALL ON slurm_acct_db.* TO slurm@localhost;"
}

write_config() {
  cat >"$LAB/etc/slurmdbd.conf" <<E
AuthType=auth/munge
AuthInfo=socket=$SOCK
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((BASE + 2))
SlurmUser=root
LogFile=$LAB/log/slurmdbd.log
PidFile=$LAB/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((BASE + 3))
StorageUser=slurm
StoragePass=slurmpw
StorageLoc=slurm_acct_db
E
  chmod 600 "$LAB/etc/slurmdbd.conf"
  # AccountingStoragePass is where clients look for munge's socket on their way to slurmdbd.
  cat >"$LAB/etc/slurm.conf" <<E
ClusterName=lab
SlurmctldHost=$HOST(127.0.0.1)
SlurmUser=root
SlurmdUser=root
MailProg=/bin/true
AuthType=auth/munge
AuthInfo=socket=$SOCK
CredType=cred/munge
SlurmctldPort=$BASE
SlurmctldPidFile=$LAB/run/slurmctld.pid
SlurmdPidFile=$LAB/run/slurmd-%n.pid
SlurmctldLogFile=$LAB/log/slurmctld.log
SlurmdLogFile=$LAB/log/slurmd-%n.log
StateSaveLocation=$LAB/spool/ctld
SlurmdSpoolDir=$LAB/spool/%n
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_min_interval=0,batch_sched_delay=0,sched_interval=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((BASE + 2))
AccountingStoragePass=$SOCK
AccountingStorageEnforce=$ENFORCE
AccountingStorageTRES=gres/gpu,gres/gpu:h100
AccountingStoreFlags=job_comment
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
JobRequeue=1
KillWait=5
MinJobAge=3600
SlurmctldTimeout=30
SlurmdTimeout=60
Prolog=$LAB/etc/prolog.sh
Epilog=$LAB/etc/epilog.sh
PrologFlags=Alloc
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 DefMemPerCPU=100 State=UP
E
  echo "AutoDetect=off" >"$LAB/etc/gres.conf"
  for ((n = 1; n <= NODES; n++)); do
    mkdir -p "$LAB/spool/gpu$n"
    cat >>"$LAB/etc/slurm.conf" <<E
NodeName=gpu$n NodeHostname=$HOST NodeAddr=127.0.0.1 Port=$((BASE + 10 + n)) CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=64000 Gres=gpu:h100:$GPUS State=UNKNOWN
E
    echo "NodeName=gpu$n Name=gpu Type=h100 File=$LAB/dev/nvidia[$(((n - 1) * GPUS))-$((n * GPUS - 1))]" >>"$LAB/etc/gres.conf"
  done
  # A file a card, named by Slurm's number of it; each line is a job.
  cat >"$LAB/etc/prolog.sh" <<E
#!/bin/sh
d=$LAB/jobmap/\$SLURMD_NODENAME; mkdir -p "\$d"
IFS=,; for g in \$SLURM_JOB_GPUS; do echo "\$SLURM_JOB_ID" >"\$d/\$g"; done; exit 0
E
  cat >"$LAB/etc/epilog.sh" <<E
#!/bin/sh
d=$LAB/jobmap/\$SLURMD_NODENAME
IFS=,; for g in \$SLURM_JOB_GPUS; do rm -f "\$d/\$g"; done; exit 0
E
  cat >"$LAB/etc/job.sh" <<'E'
#!/bin/bash
trap 'exit 0' TERM
echo "READY $$"
while :; do sleep 0.2; done
E
  chmod 755 "$LAB"/etc/*.sh
}

up() {
  install -d -m 755 "$LAB" "$LAB"/{etc,run,log,spool,spool/ctld,dev,jobmap}
  install -d -m 1777 "$LAB/jobs"
  for user in "$ALICE" "$BOB"; do id "$user" >/dev/null 2>&1 || useradd -M -s /bin/bash "$user"; done
  for ((i = 0; i < NODES * GPUS; i++)); do mknod -m 666 "$LAB/dev/nvidia$i" c 195 "$i"; done
  start_munge
  start_database
  write_config
  spawn slurmdbd slurmdbd -D
  until_ok 80 port $((BASE + 2))
  until_ok 80 sacctmgr -n show cluster
  sacctmgr -Q -i add cluster lab >/dev/null
  # -c: with no state of an earlier life.
  spawn slurmctld slurmctld -D -c
  until_ok 80 scontrol ping
  for ((n = 1; n <= NODES; n++)); do spawn "slurmd-gpu$n" slurmd -D -N "gpu$n"; done
  until_ok 120 bash -c "[ \$(sinfo -h -N -t idle -o %N | sort -u | wc -l) -eq $NODES ]"
  for account in research prod; do sacctmgr -Q -i add account $account Description=$account Organization=lab >/dev/null; done
  sacctmgr -Q -i add user "$ALICE" account=research >/dev/null
  sacctmgr -Q -i add user "$BOB" account=prod >/dev/null
  sinfo -N -h -o '%N %t %G' | sort -u
}

down() {
  [ -d "$LAB/run" ] || return 0
  for user in "$ALICE" "$BOB"; do timeout 10 scancel -u "$user" 2>/dev/null || true; done
  sleep 1
  for file in "$LAB"/run/slurmd-*.lab "$LAB"/run/{slurmctld,slurmdbd,mariadbd,munged}.lab; do
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 60); do kill -0 "$pid" 2>/dev/null || break; sleep 0.25; done
    kill -9 "$pid" 2>/dev/null || true
  done
  rm -rf "$LAB"
  for user in "$ALICE" "$BOB"; do userdel "$user" 2>/dev/null || true; done
}

case ${1:-} in
install) install_packages ;;
up) up ;;
down) down ;;
*) sed -n '2,10p' "$0" ;;
esac
