#!/usr/bin/env python3
"""Who may include whom: one table of folders, and the few files that may include a heavy library.

usage: check_layers.py [ROOT]      prints file:line of each violation; exit 1 if there is one
"""
import fnmatch
import pathlib
import re
import sys

CORE = ["engine/base", "engine/port", "engine/delta", "engine/algo", "engine/config", "engine/proto", "engine/node"]
SIM = ["sim/kernel", "sim/check", "sim/fault", "sim/defect", "sim/world"]
REPLAY = ["replay/record", "replay/analyse"]
REAL = ["engine/real/host", "engine/real/accel"]
BELOW_PROTO = CORE[:5]
BELOW_NODE = CORE[:6]

# Folder -> folders that it may include besides itself.
MAY_INCLUDE = {
    "engine/base": [],
    "engine/port": ["engine/base"],
    "engine/delta": ["engine/base", "engine/port"],
    "engine/delta/wire": ["engine/base", "engine/delta"],
    "engine/delta/cpu": ["engine/base", "engine/port", "engine/delta", "engine/delta/wire"],
    "engine/delta/cuda": ["engine/base", "engine/delta", "engine/delta/wire"],
    "engine/delta/shard": ["engine/base", "engine/delta", "engine/config", "engine/proto"],
    "engine/algo": ["engine/base", "engine/port"],
    "engine/config": ["engine/base", "engine/port"],
    "engine/proto": BELOW_PROTO,
    "engine/node": BELOW_NODE,
    "engine/real/host": CORE,
    "engine/real/accel": CORE,
    "engine/real": CORE + REAL + ["replay/record", "sim/kernel", "sim/fault"],
    "sim/kernel": CORE,
    "sim/check": ["engine/base", "engine/port"],
    "sim/fault": CORE + ["sim/kernel"],
    "sim/defect": CORE + ["sim/kernel", "sim/fault"],
    "sim/world": CORE + ["sim/kernel", "sim/check", "sim/fault", "sim/defect"],
    "replay/record": ["engine/base", "engine/port"],
    "replay/analyse": CORE + SIM + ["replay/record"],
    "sim/explore": CORE + SIM + REPLAY + ["engine/real/host"],
    "sim/cli": CORE + SIM + REPLAY + ["sim/explore", "engine/real/host", "engine/real"],
    "sim": CORE + SIM + REPLAY + ["sim/explore", "sim/cli"],
    "tests": None,  # Anything.
    "bench": None,
}

# Protocols see the values that cross the seam, never the interfaces behind it.
VALUE_HEADERS = {("engine/proto", "engine/port"): ["engine/port/types.h", "engine/port/notes.h"]}

# Heavy headers -> the files that may include them. Each costs seconds a file to compile, or ties us to a platform.
HEAVY_HEADERS = [
    (r"torch/|ATen/|c10/", ["engine/real/accel/*.cpp"]),
    (r"cuda|cublas|cudnn|cub/|thrust/", ["engine/real/accel/*.cpp", "engine/real/accel/*.cu", "engine/delta/cuda/*.cu",
                                         "engine/delta/cuda/*.cuh", "tests/cuda/*", "bench/cuda/*"]),
    (r"nccl", ["engine/real/accel/*.cpp"]),
    (r"gloo/", ["engine/real/accel/*.cpp", "bench/transport_bench.cpp"]),
    (r"asio", ["engine/real/host/*.cpp"]),
    (r"yaml-cpp/", ["engine/config/*yaml*.cpp", "engine/config/scenario*.cpp", "tests/*.cpp"]),
    (r"sqlite3\.h|zstd", ["replay/record/*.cpp", "tests/*.cpp", "bench/recorder_bench.cpp"]),
    (r"nlohmann/", ["engine/algo/*.cpp", "sim/cli/*.cpp", "tests/*.cpp", "tests/vectors/registry.h"]),
    (r"cxxopts", ["sim/cli/*.cpp", "bench/*.cpp", "tests/*.cpp"]),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCE_ENDINGS = {".h", ".cpp", ".cu", ".cuh"}
TOP_FOLDERS = ["engine", "sim", "replay", "tests", "bench"]


def layer_of(path):
    """The longest folder of the table that holds `path`, or None."""
    fits = [layer for layer in MAY_INCLUDE if path.startswith(layer + "/")]
    return max(fits, key=len, default=None)


def check_project_include(path, target, root):
    layer = layer_of(path)
    if not (root / target).is_file():
        return f"'{target}' is no file of this project; paths start at the root, libraries stand in <>"
    target_layer = layer_of(target)
    if layer is None or target_layer is None:
        return f"'{path if layer is None else target}' lies in no folder of the table"
    allowed = MAY_INCLUDE[layer]
    if allowed is None or target_layer == layer:
        return None
    if target_layer not in allowed:
        return f"{layer} may not include {target_layer} ({target})"
    values = VALUE_HEADERS.get((layer, target_layer))
    if values is not None and target not in values:
        return f"{layer} may include only the value headers of {target_layer}, not {target}"
    return None


def check_library_include(path, target):
    for pattern, files in HEAVY_HEADERS:
        if re.match(pattern, target) and not any(fnmatch.fnmatch(path, file) for file in files):
            return f"<{target}> is allowed only in {', '.join(files)}"
    return None


def check_file(path, root):
    """Yields (line number, message) of each violation in the file at root/path."""
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, target = found.groups()
        message = check_project_include(path, target, root) if quote == '"' else check_library_include(path, target)
        if message:
            yield number, message


def source_files(root):
    files = [file for top in TOP_FOLDERS for file in (root / top).rglob("*") if file.suffix in SOURCE_ENDINGS]
    return sorted(file.relative_to(root).as_posix() for file in files)


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    files = source_files(root)
    findings = [f"{path}:{number}: [layer] {message}" for path in files for number, message in check_file(path, root)]
    print("\n".join(findings + [f"layers: {len(files)} files, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
