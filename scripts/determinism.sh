#!/usr/bin/env bash
# The core under two compilers at several optimisation levels must give one digest for each scenario.
#
#   scripts/determinism.sh            g++ and clang 19, each at -O0, -O2 and -O3
#   scripts/determinism.sh --quick    g++ -O2 (the release build) and clang 19 -O0
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
  --quick) builds="release clang++-19:O0" ;;
  *) echo "usage: scripts/determinism.sh [--quick]" >&2; exit 64 ;;
esac

first="" count=0
for build in $builds; do
  folder=build/core-${build/:/-}
  if [ "$build" = release ]; then
    folder=build/release
    configure_and_build "$folder" core-digest --preset release || { echo "$build: no build"; exit 1; }
  else
    # Warnings are the release build's business; at -O3 g++ 12 warns falsely inside std::string and fmt.
    configure_and_build "$folder" core-digest -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=None \
      -DCMAKE_CXX_COMPILER="${build%%:*}" -DCMAKE_CXX_FLAGS="-${build##*:} -w" || { echo "$build: no build"; exit 1; }
  fi
  # shellcheck disable=SC2086  # The scenarios are words.
  digest=$(timeout "$kScenarioSeconds" "$folder/core-digest" 1 $kScenarios) || { echo "$build: a run failed"; exit 1; }
  printf '%s\n%s\n' "$build" "$digest"
  [ -n "$first" ] || first=$digest
  [ "$digest" = "$first" ] || { echo "digests differ: $build"; exit 1; }
  count=$((count + 1))
done
echo "$count builds, one digest each of $(wc -l <<<"$first") scenarios"
