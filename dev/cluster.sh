#!/usr/bin/env bash
# A cluster of databases on this machine's loopback, from Debian's packages: three etcd, and three PostgreSQL that three
# Patroni keep as one primary and two standbys, one of them synchronous. For tests, benchmarks and a first look.
#
#   dev/cluster.sh up DIR [PID]    make it in DIR and wait until it is ready; it ends with the process PID
#   dev/cluster.sh url DIR         the address for `weir serve --store`
#   dev/cluster.sh leader DIR      the number of the primary
#   dev/cluster.sh lagging DIR     how many members are not in the state they should be in
#   dev/cluster.sh kill DIR N      end PostgreSQL N and its Patroni with SIGKILL, as if the machine were gone
#   dev/cluster.sh crash DIR N     end PostgreSQL N alone; its Patroni starts it again
#   dev/cluster.sh start DIR N     start Patroni N again, and with it PostgreSQL
#   dev/cluster.sh etcd-kill DIR N, etcd-start DIR N
#   dev/cluster.sh down DIR        end everything
set -euo pipefail

command=${1:-}
dir=${2:-}
[ -n "$command" ] && [ -n "$dir" ] || { sed -n '5,16s/^# \{0,3\}//p' "$0" >&2; exit 2; }
number=${3:-}

die() {
  printf 'cluster: %s\n' "$*" >&2
  exit 1
}

# Neither PostgreSQL nor etcd is to run as root.
as_postgres() {
  if [ "$(id -u)" = 0 ]; then
    setpriv --reuid=postgres --regid=postgres --init-groups env LC_ALL=C.UTF-8 HOME="$dir" "$@"
  else
    env LC_ALL=C.UTF-8 HOME="$dir" "$@"
  fi
}

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -n "$bin" ] || die 'PostgreSQL is not installed: run dev/deps.sh test'
# Ports of member N: etcd for clients and for each other, Patroni, PostgreSQL.
port() { sed -n "$(( ($2 - 1) * 4 + $1 ))p" "$dir/ports"; }
peers() { for n in 1 2 3; do printf '%se%s=http://127.0.0.1:%s' "$([ "$n" = 1 ] || echo ,)" "$n" "$(port 2 "$n")"; done; }
clients() { for n in 1 2 3; do printf '%s"127.0.0.1:%s"' "$([ "$n" = 1 ] || echo ,)" "$(port 1 "$n")"; done; }

start_etcd() {
  local n=$1 state=new
  [ ! -d "$dir/etcd$n/member" ] || state=existing
  # Started by its own shell, so that the process id is etcd's.
  as_postgres sh -c 'echo $$ >"$0"; exec "$@"' "$dir/etcd$n.pid" etcd --name "e$n" --data-dir "$dir/etcd$n" \
    --listen-client-urls "http://127.0.0.1:$(port 1 "$n")" --advertise-client-urls "http://127.0.0.1:$(port 1 "$n")" \
    --listen-peer-urls "http://127.0.0.1:$(port 2 "$n")" \
    --initial-advertise-peer-urls "http://127.0.0.1:$(port 2 "$n")" \
    --initial-cluster "$(peers)" --initial-cluster-state "$state" --initial-cluster-token "weir" \
    --logger zap >>"$dir/etcd$n.log" 2>&1 </dev/null &
}

configure_patroni() {
  local n=$1
  cat >"$dir/patroni$n.yml" <<CONFIG
scope: weir
name: db$n
restapi: {listen: "127.0.0.1:$(port 3 "$n")", connect_address: "127.0.0.1:$(port 3 "$n")"}
etcd3: {hosts: [$(clients)]}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        max_connections: 100
        shared_buffers: ${SHARED_BUFFERS:-128MB}
        max_wal_size: 2GB
        wal_log_hints: "on"
        wal_keep_size: 256MB
        autovacuum_naptime: 15s
        wal_retrieve_retry_interval: 500ms
        autovacuum_vacuum_cost_delay: 1ms
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, {auth: trust}]
postgresql:
  listen: 127.0.0.1:$(port 4 "$n")
  connect_address: 127.0.0.1:$(port 4 "$n")
  data_dir: $dir/data$n
  bin_dir: $bin
  pgpass: $dir/pgpass$n
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"]
  authentication:
    superuser: {username: postgres}
    replication: {username: postgres}
    rewind: {username: postgres}
  parameters: {unix_socket_directories: $dir, lc_messages: C}
CONFIG
}

start_patroni() {
  local n=$1
  as_postgres sh -c 'echo $$ >"$0"; exec "$@"' "$dir/patroni$n.pid" \
    /usr/bin/python3 /usr/bin/patroni "$dir/patroni$n.yml" >>"$dir/patroni$n.log" 2>&1 </dev/null &
}

# Ends a process by the id in a file, if it still is what was started: `stop FILE NAME SIGNAL`.
stop() {
  local id
  id=$(head -n 1 "$1" 2>/dev/null) || return 0
  [ -n "$id" ] || return 0
  grep -q "$2" "/proc/$id/cmdline" 2>/dev/null || return 0
  kill "-$3" "$id" 2>/dev/null || true
}

kill_postgres() {
  local id children=
  id=$(head -n 1 "$dir/data$1/postmaster.pid" 2>/dev/null) || return 0
  [ -n "$id" ] && grep -q "data$1" "/proc/$id/cmdline" 2>/dev/null || return 0
  children=$(cat "/proc/$id/task/$id/children" 2>/dev/null) || true
  # shellcheck disable=SC2086
  kill -9 "$id" $children 2>/dev/null || true
}

# The members as lines `name role state`, as any Patroni tells them.
members() {
  local n
  for n in 1 2 3; do
    curl -fsS --max-time 2 "http://127.0.0.1:$(port 3 "$n")/cluster" 2>/dev/null | python3 -c '
import json, sys
for m in json.load(sys.stdin)["members"]: print(m["name"], m["role"], m["state"])' 2>/dev/null && return 0
  done
  return 0
}

# Members that are not as they should be: one leader, one synchronous standby, one more standby, all running.
lagging() {
  members | awk '
    $3 == "running" || $3 == "streaming" { good[$2]++ }
    END { l = good["leader"] > 0; s = good["sync_standby"] > 0; r = good["replica"] > 0; print 3 - l - s - r }'
}

down() {
  local n
  for n in 1 2 3; do stop "$dir/patroni$n.pid" patroni KILL; done
  for n in 1 2 3; do kill_postgres "$n"; done
  for n in 1 2 3; do stop "$dir/etcd$n.pid" etcd KILL; done
  stop "$dir/watch.pid" sh KILL
}

up() {
  local n begin=$SECONDS
  command -v patroni etcd >/dev/null || die 'Patroni and etcd are not installed: run dev/deps.sh test'
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  [ "$(id -u)" != 0 ] || chown postgres:postgres "$dir"
  python3 -c '
import socket
held = [socket.socket() for _ in range(12)]
for one in held: one.bind(("127.0.0.1", 0))
for one in held: print(one.getsockname()[1])' >"$dir/ports"
  trap down ERR INT TERM
  for n in 1 2 3; do start_etcd "$n"; done
  for n in 1 2 3; do configure_patroni "$n"; done
  for _ in $(seq 100); do
    ! curl -fsS --max-time 1 "http://127.0.0.1:$(port 1 1)/health" 2>/dev/null | grep -q true || break
    sleep 0.1
  done
  # The first makes the data, the others copy it.
  start_patroni 1
  for _ in $(seq 300); do
    ! curl -fsS --max-time 1 "http://127.0.0.1:$(port 3 1)/primary" >/dev/null 2>&1 || break
    sleep 0.2
  done
  start_patroni 2
  start_patroni 3
  for _ in $(seq 300); do
    if [ "$(lagging)" = 0 ]; then
      if [ -n "$number" ]; then
        # Ends with the process it was made for.
        sh -c 'echo $$ >"$2/watch.pid"; while kill -0 "$1" 2>/dev/null; do sleep 1; done; exec "$0" down "$2"' \
          "$0" "$number" "$dir" >/dev/null 2>&1 </dev/null &
      fi
      printf 'cluster ready in %s s: %s\n' "$((SECONDS - begin))" "$(url)"
      return
    fi
    sleep 0.2
  done
  down
  die "not ready in $((SECONDS - begin)) s; see $dir/*.log"
}

url() {
  printf 'postgres://postgres@127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s/postgres?connect_timeout=2\n' \
    "$(port 4 1)" "$(port 4 2)" "$(port 4 3)"
}

case $command in
  up) up ;;
  url) url ;;
  leader) members | sed -n 's/^db\([0-9]\) leader .*/\1/p' | head -n 1 ;;
  lagging) lagging ;;
  members) members ;;
  kill)
    stop "$dir/patroni$number.pid" patroni KILL
    kill_postgres "$number"
    ;;
  crash) kill_postgres "$number" ;;
  start) start_patroni "$number" ;;
  etcd-kill) stop "$dir/etcd$number.pid" etcd KILL ;;
  etcd-start) start_etcd "$number" ;;
  down) down ;;
  *) die "unknown command $command" ;;
esac
