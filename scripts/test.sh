#!/usr/bin/env bash
# Everything that must hold before a change is taken: checks, build, fast tests, sanitizers, compilers, lints.
#
#   scripts/test.sh                                 every stage
#   AREAL_TEST_STAGES=check,fast scripts/test.sh    only these
#
# Stages: check, build, fast, exits, objects, hot, asan, core, cuda, tidy. The last line is `N passed, N failed[, N skipped]`, counting
# each case of ctest and each stage; the exit status is 1 if anything failed. Logs lie in build/test-logs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/build_steps.sh

readonly kStages="check build fast exits objects hot asan core cuda tidy"
readonly kTidySeconds=${AREAL_TIDY_SECONDS:-180}  # Files that clang-tidy has not reached by then are counted, not read.
readonly kScenarioSeconds=120
wanted=${AREAL_TEST_STAGES:-$kStages}
wanted=" ${wanted//,/ } "
logs=build/test-logs
passed=0 failed=0 skipped=0
summary=()
detail=""

for name in $wanted; do
  case " $kStages " in
    *" $name "*) ;;
    *) echo "test: unknown stage '$name'; known: $kStages" >&2; exit 64 ;;
  esac
done

# A stage is a function stage_NAME that writes its log on stdout, returns 0 (passed), 1 (failed) or 77 (skipped), and may
# set `detail` to a few words. It runs in this shell, so that it can count cases.
run_stage() {
  local name=$1 started=$SECONDS status result
  case "$wanted" in *" $name "*) ;; *) return ;; esac
  printf '== %s\n' "$name"
  detail=""
  "stage_$name" >"$logs/$name.log" 2>&1
  status=$?
  case $status in
    0) result=passed; passed=$((passed + 1)) ;;
    77) result=skipped; skipped=$((skipped + 1)) ;;
    *) result=FAILED; failed=$((failed + 1)); tail -n 60 "$logs/$name.log" ;;
  esac
  summary+=("$(printf '%-8s %5d s  %-8s %s' "$name" $((SECONDS - started)) "$result" "$detail")")
  printf '%s\n' "${summary[-1]}"
}

stage_check() { scripts/check.sh; }

build_ok=unknown
stage_build() {
  build_ok=no
  configure_and_build build/release all --preset release || return 1
  build_ok=yes
}

# True if the release build is good; builds it when the build stage was not asked for.
need_build() {
  [ "$build_ok" = unknown ] && stage_build
  [ "$build_ok" = yes ] && return 0
  detail="no build"
  return 1
}

stage_fast() {
  need_build || return 77
  local seed status lines good bad quiet
  seed=$((16#$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1)))
  echo "RC_PARAMS=seed=$seed"
  lines=$logs/ctest.log
  RC_PARAMS="seed=$seed" ctest --preset fast --no-tests=error -j "$(nproc)" >"$lines" 2>&1
  status=$?
  cat "$lines"
  good=$(grep -cE 'Test +#[0-9]+: .* Passed +[0-9.]+ sec' "$lines")
  quiet=$(grep -cE 'Test +#[0-9]+: .*\*\*\*Skipped' "$lines")
  bad=$(($(grep -cE 'Test +#[0-9]+: .* [0-9.]+ sec' "$lines") - good - quiet))
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + quiet))
  detail="$good cases passed, $bad failed, property seed $seed"
  return $status
}

# Each file of scenarios/ ends with the exit status that it promises.
stage_exits() {
  need_build || return 77
  local file expected status count=0 wrong=0 out=$logs/exits
  rm -rf "$out" && mkdir -p "$out"
  for file in scenarios/*.yaml; do
    expected=$(python3 -B scripts/expected_exit.py "$file") || expected=unknown
    (cd "$out" && timeout "$kScenarioSeconds" "$OLDPWD/build/release/areal-sim" "$OLDPWD/$file" --seed 1) >"$out/log" 2>&1
    status=$?
    count=$((count + 1))
    [ "$status" = "$expected" ] && continue
    wrong=$((wrong + 1))
    tail -n 30 "$out/log"
    echo "$file: exit $status, expected $expected"
  done
  detail="$count scenarios, $wrong wrong"
  [ "$count" -gt 0 ] && [ "$wrong" -eq 0 ]
}

stage_objects() {
  need_build || return 77
  python3 -B scripts/check_determinism.py --objects build/release
}

# No hot path takes more instructions than it did.
stage_hot() {
  need_build || return 77
  local status out=$logs/hot_paths
  scripts/hot_paths.py >"$out"
  status=$?
  cat "$out"
  detail=$(tail -n 1 "$out")
  [ $status -eq 69 ] && return 77
  return $status
}

# Each scenario runs to the release build's digest, and no sanitizer has anything to say.
stage_asan() {
  need_build || return 77
  local status out=$logs/sanitizers
  scripts/sanitizers.sh --quick >"$out"
  status=$?
  cat "$out"
  detail=$(tail -n 1 "$out")
  return $status
}

stage_core() {
  local status out=$logs/core-digests
  scripts/determinism_matrix.sh --quick >"$out"
  status=$?
  cat "$out"
  detail=$(tail -n 1 "$out")
  return $status
}

# The device code builds; its tests run as far as there is a device. It needs nvcc.
stage_cuda() {
  if [ ! -x /usr/local/cuda/bin/nvcc ] && ! command -v nvcc >/dev/null; then
    detail="no nvcc"
    return 77
  fi
  configure_and_build build/cuda all --preset cuda || { detail="no build"; return 1; }
  local status lines=$logs/ctest-cuda.log
  ctest --preset cuda --no-tests=error >"$lines" 2>&1
  status=$?
  cat "$lines"
  detail="built, $(grep -cE ' Passed +[0-9.]+ sec' "$lines") passed"
  grep -q '\*\*\*Skipped' "$lines" && detail+=", skipped: no device"
  return $status
}

# The commit to compare with: where this branch left the default branch, or the one before.
compare_base() {
  local upstream base
  upstream=$(git symbolic-ref -q --short refs/remotes/origin/HEAD || echo origin/main)
  base=$(git merge-base HEAD "$upstream" 2>/dev/null || true)
  [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse -q --verify HEAD~1 || true)
  echo "$base"
}

tidy_one() {
  [ "$(date +%s)" -lt "$1" ] || { echo "not reached: $2"; return 0; }
  clang-tidy-19 --quiet -p build/release "$2" 2>/dev/null && echo "clean: $2"
}
export -f tidy_one

stage_tidy() {
  need_build || return 77
  local base files late status
  base=$(compare_base)
  [ -n "$base" ] || { detail="no commit to compare with"; return 77; }
  files=$(git diff --name-only --diff-filter=d "$base" -- '*.cpp' | while read -r file; do
    grep -qF "$PWD/$file\"" build/release/compile_commands.json && echo "$file"
  done)
  [ -n "$files" ] || { detail="no source changed since ${base:0:8}"; return 77; }
  printf '%s\n' "$files" | xargs -P "$(nproc)" -I{} bash -c 'tidy_one "$@"' _ $(($(date +%s) + kTidySeconds)) {} >"$logs/tidy-files.log"
  status=$?
  cat "$logs/tidy-files.log"
  late=$(grep -c '^not reached' "$logs/tidy-files.log")
  detail="$(wc -l <<<"$files") changed files since ${base:0:8}"
  [ "$late" -eq 0 ] || detail+=", $late not reached in $kTidySeconds s"
  [ "$status" -eq 0 ]
}

scripts/setup.sh || exit 1
mkdir -p "$logs"
for name in $kStages; do run_stage "$name"; done

printf '\nstage      time  result\n'
printf '%s\n' "${summary[@]}"
printf 'all      %5d s\n\n' "$SECONDS"
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line+=", $skipped skipped"
echo "$line"
[ "$failed" -eq 0 ]
