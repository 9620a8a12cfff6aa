#!/usr/bin/env bash
# Everything of this project that has threads, under the thread sanitizer: the event loop and its workers, groups over
# Gloo, recordings, and whole runs in real processes, also such whose processes are killed.
#
#   scripts/tsan.sh [--kills N] [--seed S]
#
# Builds what is needed in build/tsan. A step passes if it ends well and no process of it, child or grandchild, reported
# anything; reports lie in build/test-logs/tsan. The last line is `N passed, N failed`; exit 1 if anything failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/build_steps.sh

kills=6 seed=1
while [ $# -gt 0 ]; do
  case $1 in
    --kills) kills=${2:?}; shift 2 ;;
    --seed) seed=${2:?}; shift 2 ;;
    *) echo "usage: scripts/tsan.sh [--kills N] [--seed S]" >&2; exit 64 ;;
  esac
done
readonly kStepSeconds=1200
build=build/tsan logs=$PWD/build/test-logs/tsan
for target in host_test gloo_test real_contract_test replay_test real_test; do
  configure_and_build "$build" "$target" --preset tsan || { echo "0 passed, 1 failed"; exit 1; }
done
rm -rf "$logs" && mkdir -p "$logs"

# The sanitizer wants fixed ranges of addresses, which a kernel that spreads them widely may have given away.
fixed=(setarch "$(uname -m)" -R)
"${fixed[@]}" true 2>/dev/null || fixed=()

passed=0 failed=0
# step NAME COMMAND...
step() {
  local name=$1 started=$SECONDS result=passed status reports
  shift
  mkdir -p "$logs/$name"
  TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp log_path=$logs/$name/report history_size=4 second_deadlock_stack=1" \
    timeout "$kStepSeconds" "${fixed[@]}" "$@" >"$logs/$name/log" 2>&1
  status=$?
  reports=$(find "$logs/$name" -name 'report.*' | wc -l)
  if [ "$status" -eq 0 ] && [ "$reports" -eq 0 ]; then
    passed=$((passed + 1))
  else
    result=FAILED failed=$((failed + 1))
    [ "$reports" -gt 0 ] && find "$logs/$name" -name 'report.*' -exec grep -h '^SUMMARY' {} + | sort | uniq -c | sort -rn
    [ "$status" -eq 0 ] || tail -n 30 "$logs/$name/log"
  fi
  printf '%-8s %5d s  %-7s exit %d, %d processes reported\n' "$name" $((SECONDS - started)) "$result" "$status" "$reports"
}

step host "$build/tests/unit/host_test"
step gloo "$build/tests/contract/gloo_test"
step ports "$build/tests/contract/real_contract_test"
step replay "$build/tests/replay/replay_test" --gtest_filter=-*Slow*
step real "$build/tests/real/real_test"
step run "$build/areal-sim" real scenarios/real_small.yaml --backend gloo --seed "$seed" --quiet
step chaos scripts/real_chaos.sh --build "$build" --kills "$kills" --seed "$seed"

printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
