#!/usr/bin/env bash
# The core under two compilers at several optimisation levels must give one digest for each scenario.
#
#   scripts/determinism.sh            g++ and clang 19, each at -O0, -O2 and -O3
#   scripts/determinism.sh --quick    g++ -O0 and clang 19 -O3
#
# Prints the digests of each build and, last, one line of what came out; exit 1 if a build failed or digests differ.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/build_steps.sh

readonly kScenarioSeconds=120
readonly kScenarios="scenarios/smoke.yaml scenarios/failover.yaml scenarios/recovery/recover_every_5.yaml"
builds="g++:O0 g++:O2 g++:O3 clang++-19:O0 clang++-19:O2 clang++-19:O3"
case ${1:-} in
  "") ;;
  --quick) builds="g++:O0 clang++-19:O3" ;;
  *) echo "usage: scripts/determinism.sh [--quick]" >&2; exit 64 ;;
esac

first="" count=0
for build in $builds; do
  compiler=${build%%:*} level=${build##*:}
  folder=build/core-$compiler-$level
  # Warnings are the release build's business; at -O3 g++ 12 warns falsely inside std::string and fmt.
  configure_and_build "$folder" core-digest -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="-$level -w" || { echo "$compiler -$level: no build"; exit 1; }
  # shellcheck disable=SC2086  # The scenarios are words.
  digest=$(timeout "$kScenarioSeconds" "$folder/core-digest" 1 $kScenarios) || { echo "$compiler -$level: a run failed"; exit 1; }
  printf '%s -%s:\n%s\n' "$compiler" "$level" "$digest"
  [ -n "$first" ] || first=$digest
  [ "$digest" = "$first" ] || { echo "digests differ: $compiler -$level"; exit 1; }
  count=$((count + 1))
done
echo "$count builds, one digest each of $(wc -l <<<"$first") scenarios"
