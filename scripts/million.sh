#!/usr/bin/env bash
# Runs the smoke scenario under very many seeds, each twice, and counts runs that come out otherwise.
#
#   scripts/million.sh [--runs N] [--scenario FILE] [--jobs J]      1,000,000 seeds of scenarios/smoke.yaml, every core
#
# Works in parts of 20,000 seeds. Each part that is through is a line in build/million/KEY.tsv, where KEY stands for the
# program and the scenario, so that a later call goes on where an earlier one stopped. Prints progress and, last, one line
# of what came out; exit 1 if a run differed from its second one, or did not hold.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/build_steps.sh

readonly kPart=20000
runs=1000000 scenario=scenarios/smoke.yaml jobs=$(nproc)
usage() { echo "usage: scripts/million.sh [--runs N] [--scenario FILE] [--jobs J]" >&2; exit 64; }
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || usage
  case $1 in
    --runs) runs=$2 ;;
    --scenario) scenario=$2 ;;
    --jobs) jobs=$2 ;;
    *) usage ;;
  esac
  shift 2
done
[[ $runs =~ ^[1-9][0-9]*$ && $jobs =~ ^[1-9][0-9]*$ ]] || usage

configure_and_build build/release areal-sim --preset release || exit 1
program=build/release/areal-sim
mkdir -p build/million
done_parts=build/million/$(cat "$program" "$scenario" | sha256sum | cut -c1-16).tsv
touch "$done_parts"
report=build/million/report.json
# first last held repeated changed wall_s, once for each part that is through.
# Rows of this call's parts alone: another --runs may have ended inside one.
rows() { awk -F'\t' -v last="$runs" -v part=$kPart '$2 == last || ($2 < last && $2 - $1 + 1 == part)' "$done_parts"; }
sum() { rows | awk -F'\t' '{ held += $3; twice += $4; changed += $5; wall += $6; seeds += $2 - $1 + 1 }
  END { printf "%d seeds run twice, %d of %d held, %d came out otherwise, %.0f s of wall time", twice, held, seeds, changed, wall }'; }
field() { python3 -c 'import json,sys; r = json.load(open(sys.argv[1])); print(r["counts"].get("held", 0), r["checked_twice"], r["changed"], r["wall_seconds"])' "$report"; }

for ((first = 1; first <= runs; first += kPart)); do
  last=$((first + kPart - 1 < runs ? first + kPart - 1 : runs))
  grep -q "^$first"$'\t'"$last"$'\t' "$done_parts" && continue
  "$program" "$scenario" --seeds "$first..$last" --jobs "$jobs" --recheck 100% --quiet --json "$report" >build/million/log 2>&1
  status=$?
  case $status in 0 | 1 | 2 | 3 | 4) ;; *) cat build/million/log; echo "seeds $first..$last: exit $status"; exit 1 ;; esac
  read -r held twice changed wall <<<"$(field)"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$first" "$last" "$held" "$twice" "$changed" "$wall" >>"$done_parts"
  [ "$status" -eq 0 ] || cat build/million/log
  echo "$last of $runs: $(sum)"
done
total=$(sum)
echo "$scenario: $total"
rows | awk -F'\t' '$3 != $2 - $1 + 1 || $4 != $2 - $1 + 1 || $5 != 0 { bad = 1 } END { exit bad }'
