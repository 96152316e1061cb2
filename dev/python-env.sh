#!/usr/bin/env bash
# Makes the Python environments of the real clients that the tests run: one a client, since their needs collide.
# Tests/Clients/requirements-NAME.txt becomes .venv-NAME. An environment is made again when its file changed.
set -euo pipefail
cd "$(dirname "$0")/.."

for requirements in Tests/Clients/requirements-*.txt; do
  name=${requirements##*/requirements-}
  name=${name%.txt}
  directory=.venv-$name
  # The path is in it because environments cannot be moved.
  stamp="$(sha256sum <"$requirements") $PWD $(python3 --version)"
  if [ -f "$directory/stamp" ] && [ "$(cat "$directory/stamp")" = "$stamp" ]; then continue; fi
  printf 'python-env: making %s\n' "$directory" >&2
  rm -rf "$directory"
  python3 -m venv "$directory"
  if ! "$directory/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --no-deps -r "$requirements" >&2; then
    rm -rf "$directory"
    printf 'python-env: pip could not install %s (is PyPI reached?)\n' "$requirements" >&2
    exit 1
  fi
  "$directory/bin/python" -m pip --disable-pip-version-check check >&2
  printf '%s' "$stamp" >"$directory/stamp"
done
