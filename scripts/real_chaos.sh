#!/usr/bin/env bash
# Kills processes of real runs at moments spread over the phases of their updates, and counts what comes of it.
#
#   scripts/real_chaos.sh [--kills N] [--seed S] [--build FOLDER]
#
# Each run is scenarios/real_small.yaml without its own faults and with a few kills of its own: engine ranks and trainers,
# each set off by an event of the trace. A run must end as completed, or fail with a named cause, and leave no process, no
# port lease, no folder and no shared memory behind. Prints a table by phase; exit 1 if anything was left or a run failed
# without a cause.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

kills=50 seed=1 build=build/release
while [ $# -gt 0 ]; do
  case $1 in
    --kills) kills=${2:?}; shift 2 ;;
    --seed) seed=${2:?}; shift 2 ;;
    --build) build=${2:?}; shift 2 ;;
    *) echo "usage: scripts/real_chaos.sh [--kills N] [--seed S] [--build FOLDER]" >&2; exit 64 ;;
  esac
done
program=$build/areal-sim
[ -x "$program" ] || { echo "real_chaos: build first: scripts/run.sh" >&2; exit 69; }

# name|how the kill is set off
phases=(
  'train|effect: start_compute, what: gradients'
  'checkpoint|effect: start_compute, what: save_checkpoint'
  'enter|note: collective_entered'
  'capture|effect: start_compute, what: capture'
  'vote|effect: post_batch, kind: min'
  'pack|effect: start_compute, what: pack_delta'
  'counts|effect: post_batch, round: counts'
  'data|effect: post_batch, round: data'
  'verify|effect: post_batch, kind: sum'
  'apply|note: apply_started'
  'barrier|effect: post_batch, kind: barrier'
  'commit|message: committed'
)
declare -A tried recovered named lost
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
done_kills=0 leaks=0 nameless=0 run=0
while [ "$done_kills" -lt "$kills" ]; do
  run=$((run + 1))
  file=$work/run$run.yaml
  sed '/^  faults:/,/^$/d' scenarios/real_small.yaml >"$file"
  used=()
  {
    echo "  faults:"
    for version in 4 8 11; do
      phase=${phases[$(((seed + run * 3 + version) % ${#phases[@]}))]}
      name=${phase%%|*} when=${phase#*|}
      case $name in
        train | checkpoint | capture | pack) node="trainer.$(((seed + run) % 2))" ;;
        apply | commit | counts | data) node="engine.$(((seed + run) % 2)).rank.0" ;;
        *) if [ $(((seed + run + version) % 2)) -eq 0 ]; then node=trainer.1; else node=engine.1.rank.0; fi ;;
      esac
      echo "    - {do: kill, node: $node, when: {$when, node: $node, version: $version, occurrence: 1}}"
      used+=("$name")
    done
    echo "  expect: {verdict: held}"
  } >"$work/faults"
  sed -i '/^  expect:/d' "$file"
  cat "$work/faults" >>"$file"
  TMPDIR=$work timeout 120 "$program" real "$file" --backend gloo --seed $((seed + run)) --quiet >"$work/out" 2>&1
  status=$?
  for name in "${used[@]}"; do
    done_kills=$((done_kills + 1))
    tried[$name]=$((${tried[$name]:-0} + 1))
    if [ $status -eq 0 ]; then
      recovered[$name]=$((${recovered[$name]:-0} + 1))
    elif grep -qE 'FAIL|STUCK|STOPPED|ended early' "$work/out"; then
      named[$name]=$((${named[$name]:-0} + 1))
    else
      lost[$name]=$((${lost[$name]:-0} + 1)) nameless=$((nameless + 1))
    fi
  done
  [ $status -eq 0 ] || { echo "run $run (seed $((seed + run)), ${used[*]}): exit $status"; tail -n 15 "$work/out"; }
  left=$(pgrep -c -f "$work/areal-run-" || true)
  folders=$(find "$work" -maxdepth 1 -name 'areal-run-*' 2>/dev/null | wc -l)
  if [ "${left:-0}" -ne 0 ] || [ "$folders" -ne 0 ]; then
    leaks=$((leaks + 1))
    echo "run $run left $left processes and $folders folders behind"
  fi
done
printf '\n%-11s %5s %9s %11s %8s\n' phase kills recovered named_cause no_cause
for phase in "${phases[@]}"; do
  name=${phase%%|*}
  [ -n "${tried[$name]:-}" ] || continue
  printf '%-11s %5d %9d %11d %8d\n' "$name" "${tried[$name]}" "${recovered[$name]:-0}" "${named[$name]:-0}" "${lost[$name]:-0}"
done
echo "$done_kills kills in $run runs, $leaks leaks, $nameless without a cause"
[ "$leaks" -eq 0 ] && [ "$nameless" -eq 0 ]
