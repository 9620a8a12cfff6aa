#!/usr/bin/env bash
# Runs scenarios under the address and undefined behaviour sanitizers: each must come to the release build's digest and
# exit status, and no sanitizer may have anything to say.
#
#   scripts/sanitizers.sh            every file below scenarios/, recorded as well
#   scripts/sanitizers.sh --quick    the files of scenarios/ itself, not recorded
#
# Defects that a scenario names are off. Prints a line each and, last, one of what came out; exit 1 if one is wrong.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/build_steps.sh

case ${1:-} in
  "") mapfile -t files < <(find scenarios -name '*.yaml' | LC_ALL=C sort); export kRecord=yes kSeconds=900 ;;
  --quick) files=(scenarios/*.yaml); export kRecord="" kSeconds=120 ;;
  *) echo "usage: scripts/sanitizers.sh [--quick]" >&2; exit 64 ;;
esac
[ -f "${files[0]}" ] || { echo "no scenarios"; exit 1; }
configure_and_build build/release core-digest --preset release || exit 1
configure_and_build build/asan core-digest --preset asan || exit 1
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_init_order=1 UBSAN_OPTIONS=print_stacktrace=1
work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT

# run_one PROGRAM NAME FILE: what it prints and its status.
run_one() {
  local -a record=()
  [ -z "$kRecord" ] || { mkdir -p "$work/$2"; record=(--record "$work/$2"); }
  timeout "$kSeconds" "$1" 1 "${record[@]}" "$3" 2>&1
  echo "exit $?"
  rm -rf "${work:?}/$2"
}
compare_one() {
  local file=$1 name=${1//\//_} wanted seen started=$SECONDS
  wanted=$(run_one build/release/core-digest "$name.release" "$file")
  seen=$(run_one build/asan/core-digest "$name.asan" "$file")
  if [ "$seen" = "$wanted" ]; then
    printf 'equal  %4d s  %s\n' $((SECONDS - started)) "$file"
  else
    printf 'WRONG  %4d s  %s\nsanitized\n%s\nrelease\n%s\n' $((SECONDS - started)) "$file" "$seen" "$wanted"
  fi
}
export -f run_one compare_one
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} bash -c 'compare_one "$1"' _ {} | tee "$work/lines"
wrong=$(grep -c '^WRONG' "$work/lines")
through=$(grep -cE '^(equal|WRONG)' "$work/lines")
echo "$through of ${#files[@]} scenarios, $wrong wrong"
[ "$wrong" -eq 0 ] && [ "$through" -eq ${#files[@]} ]
