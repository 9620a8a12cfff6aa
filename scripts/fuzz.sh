#!/usr/bin/env bash
# Fuzzes every reader of outside bytes, under the address and undefined behaviour sanitizers.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]     60 seconds each of all targets by default
#
# Targets: tests/fuzz/targets.h. What a target has learned stays in build/fuzz/corpus/TARGET for the next time. An input
# that breaks a reader lies in build/fuzz/found; mend the reader and keep the input in tests/data/corpus/TARGET, where the
# fast tests run it. Prints runs, rate and coverage of each; exit 1 if something was found.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/build_steps.sh

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS [TARGET...]]" >&2; exit 64; }
shift $(($# > 0 ? 1 : 0))
targets=("$@")

configure_and_build build/fuzz areal-fuzz --preset fuzz || exit 1
# Asked for a target that there is not, it names those that there are.
[ ${#targets[@]} -gt 0 ] || read -ra targets <<<"$(build/fuzz/tests/fuzz/areal-fuzz 2>&1 | sed -n 's/^AREAL_FUZZ_TARGET must be one of: *//p')"
found=build/fuzz/found
mkdir -p "$found"
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1:strict_init_order=1
printf '%-10s %12s %10s %9s %8s  %s\n' target runs runs/s edges inputs result
wrong=0
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target log=build/fuzz/$target.log
  mkdir -p "$corpus"
  kept=()
  [ -d "tests/data/corpus/$target" ] && kept=("tests/data/corpus/$target")
  AREAL_FUZZ_TARGET=$target AREAL_FUZZ_SEEDS=$corpus build/fuzz/tests/fuzz/areal-fuzz "$corpus" "${kept[@]}" \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="$found/$target-" \
    >"$log" 2>&1
  status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  edges=$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1 | cut -d' ' -f2)
  result="nothing found"
  if [ $status -ne 0 ]; then
    wrong=$((wrong + 1))
    result="FOUND: $(sed -n 's/^artifact_prefix.*Test unit written to //p;s/^SUMMARY: //p' "$log" | paste -sd' '), $log"
  fi
  printf '%-10s %12s %10s %9s %8s  %s\n' "$target" "${runs:--}" "${rate:--}" "${edges:--}" "$(find "$corpus" -type f | wc -l)" "$result"
done
echo "${#targets[@]} targets, $seconds s each, $wrong with findings"
[ "$wrong" -eq 0 ]
