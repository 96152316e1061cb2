#!/usr/bin/env bash
# Checks the documents: every relative link leads to a file, every heading link to a heading. Then builds the API
# documentation of the products with docc, warnings being errors, into .build/docs.
set -euo pipefail
cd "$(dirname "$0")/.."

python3 dev/check_links.py

rm -rf .build/docs .build/docs-symbols
mkdir -p .build/docs .build/docs-symbols
swift package dump-symbol-graph --skip-synthesized-members --minimum-access-level public >/dev/null
graphs=$(find -L .build -maxdepth 3 -type d -name symbolgraph -not -path '.build/tsan/*' -not -path '.build/asan/*' | head -n 1)
for product in ConnectionServer StreamClient DeviceRuntime DesktopNotifications TestKit; do
  mkdir -p ".build/docs-symbols/$product"
  # Extensions of other modules sit in files named Product@Other.
  find "$graphs" -name "$product.symbols.json" -exec cp {} ".build/docs-symbols/$product/" \;
  find "$graphs" -name "$product@*.symbols.json" -exec cp {} ".build/docs-symbols/$product/" \;
  [ -s ".build/docs-symbols/$product/$product.symbols.json" ] || {
    printf 'docs: no symbols of %s\n' "$product" >&2
    exit 1
  }
  catalog=Sources/$product/$product.docc
  docc convert $([ -d "$catalog" ] && printf '%s' "$catalog") \
    --fallback-display-name "$product" --fallback-bundle-identifier "weir.$product" \
    --additional-symbol-graph-dir ".build/docs-symbols/$product" \
    --warnings-as-errors --output-path ".build/docs/$product.doccarchive"
done
printf 'docs: fine, in .build/docs\n'
