#!/usr/bin/env bash
# The delta path on a GPU, in one call: build, check against the CPU, measure it and its peers, print the table.
#
#   scripts/bench_gpu.sh            results go to $OUT if it is set, else to out/gpu; the kept ones are in bench/results
#   scripts/bench_gpu.sh --quick    the sweep with 2^26 weights a setting instead of 2^31
#   scripts/bench_gpu.sh --detect   the detector alone: build, its checks, its rows, the table; no peers, no sanitizer
#   scripts/bench_gpu.sh --wire     the wire coding alone, likewise
#
# Needs a GPU of sm_90, nvcc, CMake and a C++ compiler; python3 with torch for the peers. Without a GPU it says "skipped:
# no device" and exits 0. Exit status 1: something did not build, or a check did not hold. Takes about five minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

results=${OUT:-out/gpu}
quick=()
targets=()
test_options=()
only_one=0
case "${1:-}" in
  "") ;;
  --quick) quick=(--quick) ;;
  --detect | --wire)
    only_one=1
    quick=(--only "${1#--}")
    test_options=("$1")
    targets=(--target delta_gpu_bench delta_gpu_test delta_gpu_host_test)
    ;;
  *) echo "bench_gpu: unknown argument '$1'; usage: scripts/bench_gpu.sh [--quick | --detect | --wire]" >&2; exit 64 ;;
esac

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  echo "skipped: no device"
  exit 0
fi
mkdir -p "$results"
failed=0
part() { printf '== %s (at %d s)\n' "$*" "$SECONDS"; }

part build
if ! cmake --preset cuda >"$results/build.log" 2>&1 || ! cmake --build --preset cuda -j "$(nproc)" "${targets[@]}" >>"$results/build.log" 2>&1; then
  tail -n 40 "$results/build.log"
  exit 1
fi

part checks
build/cuda/tests/cuda/delta_gpu_host_test || failed=1
timeout 100 build/cuda/tests/cuda/delta_gpu_test "${test_options[@]}" 2>&1 | tee "$results/checks.log" | tail -n 25
status=${PIPESTATUS[0]}
[ "$status" -eq 0 ] || failed=1
if [ "$status" -eq 124 ]; then
  echo "bench_gpu: the checks did not end; nothing is measured" >&2
  exit 1
fi

checks=$(tail -n 1 "$results/checks.log")

part measure
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu --format=csv >"$results/card.csv"
timeout 120 build/cuda/bench/delta_gpu_bench --json "$results/delta_gpu.json" "${quick[@]}" >"$results/delta_gpu.log" 2>&1 || failed=1
grep -E '^bench check .*holds NO' "$results/delta_gpu.log"
tail -n 3 "$results/delta_gpu.log"

python3=$(command -v python3 || echo python3)
if [ "$only_one" -eq 1 ]; then
  part table
  "$python3" -B bench/peers/gpu_table.py "$results/delta_gpu.json" "$results/no-peers.json" | tee "$results/table.txt"
  echo "checks on the device: $checks" | tee -a "$results/table.txt"
  [ "$failed" -eq 0 ] || echo "bench_gpu: FAILED, see above"
  exit "$failed"
fi

part peers
timeout 120 "$python3" -B bench/peers/delta_torch_gpu.py --rates "$results/delta_gpu.json" --json "$results/delta_torch.json" \
  >"$results/delta_torch.log" 2>&1 || { tail -n 20 "$results/delta_torch.log"; echo "bench_gpu: the peers did not run"; }

# Where the runtime lets it look. What it found, or that it did not run, is part of the result.
part sanitizer
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
for tool in memcheck racecheck synccheck; do
  if [ -z "$sanitizer" ]; then
    echo "$tool: not run: no compute-sanitizer"
    continue
  fi
  # One after the other: what is slow under one of the tools has a time of its own.
  status=0
  : >"$results/$tool.log"
  for of in --detect --apply --wire; do
    timeout 90 "$sanitizer" --tool "$tool" --error-exitcode 9 build/cuda/tests/cuda/delta_gpu_test --small $of >>"$results/$tool.log" 2>&1
    last=$?
    case $last in
      0) ;;
      124) echo "$tool $of: not finished in 90 s" ;;
      *) status=$last ;;
    esac
  done
  if grep -qE 'Device not supported|not supported on this' "$results/$tool.log"; then
    echo "$tool: not run: the runtime does not allow it"
  else
    echo "$tool: exit $status; $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$results/$tool.log" | sort -u | paste -sd';')"
  fi
done | tee "$results/sanitizer.txt"
grep -q 'exit [1-9]' "$results/sanitizer.txt" && failed=1

# Few files come back from some machines: one archive has what is not a result.
tar -czf "$results/logs.tar.gz" -C "$results" $(cd "$results" && ls | grep -E '\.(log|csv)$')
rm -f "$results"/*.log

part table
"$python3" -B bench/peers/gpu_table.py "$results/delta_gpu.json" "$results/delta_torch.json" | tee "$results/table.txt"
echo "checks on the device: $checks" | tee -a "$results/table.txt"
[ "$failed" -eq 0 ] || echo "bench_gpu: FAILED, see above"
exit "$failed"
