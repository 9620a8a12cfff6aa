#!/usr/bin/env bash
# Builds areal-sim if anything changed, then runs it with the given arguments.
#
#   scripts/run.sh scenarios/smoke.yaml --seed 1
#
# Paths in the arguments are relative to where you stand. Everything about the build goes to stderr.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/setup.sh" >&2
(
  cd "$root"
  . scripts/build_steps.sh
  configure_and_build build/release all --preset release
)
exec "$root/build/release/areal-sim" "$@"
