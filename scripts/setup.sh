#!/usr/bin/env bash
# Installs the Debian packages that the build and its checks need; says so in one line when nothing is missing.
#
#   scripts/setup.sh           install what is missing (apt-get; sudo when not root)
#   scripts/setup.sh --check   only list what is missing; exit 1 if something is
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config git python3                             # building
  libfmt-dev libyaml-cpp-dev libsqlite3-dev sqlite3 libxxhash-dev libzstd-dev     # the programs
  nlohmann-json3-dev libcxxopts-dev
  libasio-dev libssl-dev libgloo-dev                                              # real processes
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev                    # tests and benchmarks
  clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev                       # second compiler and lints
  valgrind                                                                        # counts instructions
)

distribution="unknown"
if [ -r /etc/os-release ]; then
  distribution=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
fi

explain_distribution() {
  case "$distribution" in
    "debian 12") ;;
    "ubuntu 24.04") echo "setup: $distribution: not tested; clang 19 may need another package source there" >&2 ;;
    *) echo "setup: $distribution: not tested; the packages below are named as in Debian 12" >&2 ;;
  esac
}

if ! command -v dpkg-query >/dev/null; then
  explain_distribution
  echo "setup: no dpkg here; install by hand what these provide: ${packages[*]}" >&2
  exit 1
fi

missing=()
installed=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' "${packages[@]}" 2>/dev/null || true)"
for package in "${packages[@]}"; do
  case "$installed" in
    *" $package=installed "*) ;;
    *) missing+=("$package") ;;
  esac
done

if [ "${1:-}" = "--check" ]; then
  [ ${#missing[@]} -eq 0 ] && { echo "setup: nothing is missing"; exit 0; }
  explain_distribution
  printf '%s\n' "${missing[@]}"
  exit 1
fi
if [ $# -gt 0 ]; then
  echo "setup: unknown argument '$1'; usage: scripts/setup.sh [--check]" >&2
  exit 64
fi
[ ${#missing[@]} -eq 0 ] && exit 0

explain_distribution
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo; ask an administrator to run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_missing() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}
# The lists may be absent or old: refresh them only when the first try fails.
if ! install_missing >"$log" 2>&1; then
  if ! { "${as_root[@]}" apt-get update && install_missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get could not install: ${missing[*]}" >&2
    exit 1
  fi
fi
echo "setup: done"
