#!/usr/bin/env bash
# Checks that need no build: format, layers, determinism of sources, sizes.
#
#   scripts/check.sh          check
#   scripts/check.sh --fix    let clang-format rewrite what it can, then check
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

mapfile -t sources < <(git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | while read -r file; do [ -f "$file" ] && echo "$file"; done)
if [ "${1:-}" = "--fix" ]; then
  clang-format-19 -i "${sources[@]}"
elif [ $# -gt 0 ]; then
  echo "check: unknown argument '$1'; usage: scripts/check.sh [--fix]" >&2
  exit 64
fi

failed=0
findings=$(clang-format-19 --dry-run --Werror --ferror-limit=1 "${sources[@]}" 2>&1 | grep -E '^[^ ].*: error: ' || true)
if [ -n "$findings" ]; then
  count=$(cut -d: -f1 <<<"$findings" | sort -u | wc -l)
  printf '%s\n' "$findings" | sed -E 's/: error: .*/: [format] run scripts\/check.sh --fix/'
else
  count=0
fi
echo "format: ${#sources[@]} files, $count findings"
[ "$count" -eq 0 ] || failed=1

for lint in check_layers check_determinism check_sizes; do
  python3 -B "scripts/$lint.py" || failed=1
done
exit $failed
