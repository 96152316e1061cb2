#!/usr/bin/env bash
# Makes sure that the packages Weir is built with are installed; says what is missing and installs it with apt-get.
#
#   dev/deps.sh run    what building and running the server needs
#   dev/deps.sh test   that, and what the tests need
#   dev/deps.sh peers  what run needs, and the servers that Weir is compared with; none of them is started
set -euo pipefail

run_packages=(libuv1-dev libssl-dev libxml2-dev libhttp-parser-dev libnghttp2-dev zlib1g-dev libcurl4-openssl-dev
  libsqlite3-dev libpq-dev libdbus-1-dev pkg-config)
# The last two lines: a desktop for the tests of notifications, and a cluster of databases.
test_packages=(python3 python3-venv openssl gnutls-bin ca-certificates git curl nghttp2-client wrk chromium libjs-strophe
  dunst xvfb xdotool dbus imagemagick fonts-dejavu-core
  postgresql patroni etcd-server etcd-client python3-etcd python3-psycopg2)
peer_packages=(prosody ejabberd mosquitto)

die() {
  printf 'deps: %s\n' "$*" >&2
  exit 1
}

case "${1:-}" in
  run) wanted=("${run_packages[@]}") ;;
  test) wanted=("${run_packages[@]}" "${test_packages[@]}") ;;
  peers) wanted=("${run_packages[@]}" "${peer_packages[@]}") ;;
  *) die 'say run, test or peers' ;;
esac

command -v swift >/dev/null || die 'the command swift is not in PATH; Weir is built with Swift 6.3 (https://www.swift.org/install/linux/)'
version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
case "$version" in
  6.[2-9] | 6.[1-9][0-9] | [7-9].* | [1-9][0-9].*) ;;
  *) die "Swift 6.2 or later is needed, found ${version:-none}" ;;
esac

if ! command -v dpkg-query >/dev/null; then
  printf 'deps: no dpkg-query here, so not looking for: %s\n' "${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

printf 'deps: missing: %s\n' "${missing[*]}" >&2
command -v apt-get >/dev/null || die "no apt-get here; install by hand: ${missing[*]}"
if [ "$(id -u)" = 0 ]; then
  as_root=(env)
elif command -v sudo >/dev/null; then
  # In continuous integration nobody can type a password.
  as_root=(sudo ${CI:+-n})
else
  die "neither root nor sudo; as root: apt-get install -y ${missing[*]}"
fi

# Debian starts a server when it is installed; the comparison starts its own.
policy=/usr/sbin/policy-rc.d
if [ "$1" = peers ] && [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi

install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}
# The lists of a fresh system are empty or old; one update is enough.
if ! install; then
  "${as_root[@]}" apt-get update -q >&2 || die 'apt-get update failed'
  install || die "apt-get could not install: ${missing[*]}"
fi
