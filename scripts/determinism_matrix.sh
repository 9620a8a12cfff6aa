#!/usr/bin/env bash
# One seed must give one digest and one recording, whatever built the program and wherever it runs.
#
#   scripts/determinism_matrix.sh            12 builds, each run in 10 ways: 120 cells
#   scripts/determinism_matrix.sh --quick    g++ -O2 (the release build) and clang 19 -O0, each run once
#
# Builds: g++ and clang 19; -O0, -O2 and -O3 -march=native; automatic variables left alone, or filled with a pattern.
# Ways: as it is; malloc that fills, moves and maps otherwise; a German locale and an odd time zone; an environment of
# 120,000 bytes; glibc without AVX2 and FMA; each with and without random addresses. A cell runs every scenario, recorded,
# and its lines (digest, number of events, digest of the recording's content) must be those of the first cell.
#
# Prints a table and, last, one line of what came out; exit 1 if a build or a run failed or cells differ, naming them.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/build_steps.sh

export kScenarios="scenarios/smoke.yaml scenarios/failover.yaml"
export kCellSeconds=${AREAL_CELL_SECONDS:-300}
kWays="plain malloc locale long nofma"
kAslr="aslr fixed"
builds=""
case ${1:-} in
  "")
    for compiler in g++ clang++-19; do
      for level in O0 O2 O3-native; do builds+=" $compiler:$level $compiler:$level:fill"; done
    done
    setarch -R true || { echo "determinism: random addresses cannot be switched off here (setarch -R)" >&2; exit 69; }
    ;;
  --quick)
    builds="release clang++-19:O0" kWays="plain" kAslr="aslr"
    kScenarios+=" scenarios/recovery/recover_every_5.yaml"
    ;;
  *) echo "usage: scripts/determinism_matrix.sh [--quick]" >&2; exit 64 ;;
esac
work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT

# Brings core-digest of a build up to date. All files of a library are compiled as one, but those that cannot be; if
# that fails, file by file. Warnings are the release build's business; at -O3 g++ 12 warns falsely inside std::string.
make_build() {
  local folder=$1 compiler level fill flags
  if [ "$2" = release ]; then
    configure_and_build "$folder" core-digest --preset release
    return
  fi
  IFS=: read -r compiler level fill <<<"$2"
  flags="-${level/-native/ -march=native} -w"
  local -a arguments=(-S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_COMPILER=$compiler"
    "-DCMAKE_CXX_FLAGS=$flags" "-DAREAL_AUTO_INIT=${fill:+pattern}" -DCMAKE_UNITY_BUILD_BATCH_SIZE=0)
  configure_and_build "$folder" core-digest "${arguments[@]}" -DCMAKE_UNITY_BUILD=ON && return
  echo "determinism: $2: file by file, since joined files do not compile" >&2
  configure_and_build "$folder" core-digest "${arguments[@]}" -DCMAKE_UNITY_BUILD=OFF
}

# run_cell BUILD FOLDER WAY ASLR: writes what the cell printed to $work/BUILD.WAY.ASLR.
run_cell() {
  local build=$1 folder=$2 way=$3 aslr=$4 name=$1.$3.$4
  local -a setting=() random=()
  case $way in
    malloc) setting=(MALLOC_PERTURB_=165 MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=4096 MALLOC_TOP_PAD_=0 MALLOC_TRIM_THRESHOLD_=0) ;;
    locale) setting=("LOCPATH=$work/locales" LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 TZ=Pacific/Chatham) ;;
    long) setting=("AREAL_PADDING=$(printf '%0120000d' 0)") ;;
    nofma) setting=(GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable) ;;
  esac
  [ "$aslr" = aslr ] || random=(setarch -R)
  mkdir -p "$work/$name.db"
  # shellcheck disable=SC2086  # The scenarios are words.
  timeout "$kCellSeconds" env "${setting[@]}" "${random[@]}" "$folder/core-digest" 1 --record "$work/$name.db" $kScenarios \
    >"$work/$name" 2>"$work/$name.err"
  local status=$?
  [ $status -eq 0 ] || { echo "exit $status"; tail -n 3 "$work/$name.err"; } >>"$work/$name"
  rm -rf "$work/$name.db"
}
export -f run_cell

# A locale with decimal commas; where its sources are not installed the setting alone must not matter.
if [[ $kWays = *locale* ]]; then
  mkdir -p "$work/locales"
  localedef -i de_DE -f UTF-8 "$work/locales/de_DE.UTF-8" >/dev/null 2>&1 ||
    echo "determinism: no German locale here; only its variables are set" >&2
fi

heads=""
for aslr in $kAslr; do for way in $kWays; do heads+=$(printf ' %-12s' "$way/$aslr"); done; done
printf '%-22s%s\n' build "$heads"
reference="" count=0 wrong=()
for build in $builds; do
  folder=build/core-${build//:/-}
  [ "$build" = release ] && folder=build/release
  make_build "$folder" "$build" || { echo "$build: no build"; exit 1; }
  for aslr in $kAslr; do for way in $kWays; do printf '%s %s\n' "$way" "$aslr"; done; done |
    xargs -P "$(nproc)" -L 1 bash -c 'run_cell "$0" "$1" "$2" "$3"' "$build" "$folder"
  row=$(printf '%-22s' "$build")
  for aslr in $kAslr; do
    for way in $kWays; do
      seen=$(cat "$work/$build.$way.$aslr")
      [ -n "$reference" ] || reference=$seen
      count=$((count + 1))
      if [ "$seen" = "$reference" ] && [[ $seen != *exit* ]]; then
        row+=$(printf ' %-12s' equal)
      else
        row+=$(printf ' %-12s' DIFFERS)
        wrong+=("$build $way $aslr"$'\n'"$seen")
      fi
    done
  done
  echo "$row"
done
printf '%s\n' "$reference"
# shellcheck disable=SC2086
summary="$(wc -w <<<"$builds") builds, $count cells, one digest each of $(wc -w <<<"$kScenarios") scenarios and their recordings"
if [ ${#wrong[@]} -gt 0 ]; then
  printf 'not equal to the first: %s\n' "${wrong[@]}"
  echo "$count cells, ${#wrong[@]} differ, the first: ${wrong[0]%%$'\n'*}"
  exit 1
fi
echo "$summary"
