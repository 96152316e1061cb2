#!/usr/bin/env bash
# Three databases and three nodes on loopback until Ctrl-C: `dev/cluster-demo.sh WEIR DIR`. The data stays in DIR only
# while it runs.
set -euo pipefail
weir=$1
dir=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
nodes=()

finish() {
  trap - EXIT INT TERM
  for id in "${nodes[@]}"; do kill -TERM "$id" 2>/dev/null || true; done
  for id in "${nodes[@]}"; do
    for _ in $(seq 200); do
      kill -0 "$id" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$id" 2>/dev/null || true
  done
  "$here/cluster.sh" down "$dir/databases"
  # The last processes of the databases notice a moment later.
  sleep 1
  rm -rf "$dir"
}
trap finish EXIT INT TERM

echo 'Starting three databases; this takes half a minute.'
"$here/cluster.sh" up "$dir/databases" $$
url=$("$here/cluster.sh" url "$dir/databases")
for n in 1 2 3; do
  # All nodes show clients one authority and have the keys of the first.
  if [ "$n" != 1 ]; then
    mkdir -p "$dir/node$n"
    cp -r "$dir/node1/credentials" "$dir/node$n/"
  fi
  "$weir" serve --data "$dir/node$n" --store "$url" --log-level warning \
    --xmpp-port $((5234 + n)) --https-port $((8442 + n)) --admin-port $((8079 + n)) >"$dir/node$n.out" &
  nodes+=("$!")
  for _ in $(seq 300); do
    ! grep -q 'weir ready' "$dir/node$n.out" || break
    kill -0 "$!" 2>/dev/null || exit 1
    sleep 0.1
  done
  cat "$dir/node$n.out"
done
cat <<TEXT

Try, in another terminal:
  $weir register --server localhost:8443 --credentials $dir/node1/credentials >device.json
  $weir device --from device.json --server localhost:5236 --credentials $dir/node1/credentials
  $weir send --to TOKEN --server localhost:5235 --credentials $dir/node1/credentials
  $here/cluster.sh kill $dir/databases \$($here/cluster.sh leader $dir/databases)
  curl -H "Authorization: Bearer \$(cat $dir/node1/credentials/admin-key)" localhost:8080/admin/v1/nodes
Ctrl-C ends everything.
TEXT
wait -n "${nodes[@]}" || true
