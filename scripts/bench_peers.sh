#!/usr/bin/env bash
# Measures the scheduler against ns-3, SimGrid, SimPy and std::priority_queue in one run, and prints one table of ratios.
#
#   scripts/bench_peers.sh [ROUNDS]     5 rounds unless said, at least 5; under ten minutes
#
# Installs the peers from Debian if they are missing (nothing else needs them), builds the programs in bench/peers and
# sim_bench of the release build, and lets scripts/bench_peers.py run them in turns.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(libns3-dev libsimgrid-dev python3-simpy3 python3)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  echo "bench_peers: installing ${missing[*]}" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >&2
fi

if [ ! -f build/release/CMakeCache.txt ]; then cmake --preset release >/dev/null; fi
cmake --build --preset release --target sim_bench >&2
mkdir -p build/peers
# ns-3.37's headers are C++17, and warn; its pkg-config file names libraries that the package does not need.
g++ -std=c++17 -O2 -DNDEBUG -I. bench/peers/phold_ns3.cpp -o build/peers/phold_ns3 -lns3-core
g++ -std=c++20 -O2 -DNDEBUG -I. bench/peers/actors_simgrid.cpp -o build/peers/actors_simgrid -lsimgrid
exec /usr/bin/python3 scripts/bench_peers.py "${1:-5}"
