#!/usr/bin/env python3
"""Bans, by zone, what would make two runs of one seed differ, in source files and in object files.

usage: check_determinism.py [FILE...]          sources; without FILE, all of engine, sim, replay, tests and bench
       check_determinism.py --objects DIR      symbols that the core libraries built under DIR ask for

A line is excused by `// det-ok: rule: reason` on it or, alone, above it. An excuse that excuses nothing is a finding.
docs/DETERMINISM.md says why each rule is there and what to use instead.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

import cpp_text

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder -> zone. The core decides and must be equal everywhere; algo is core with libm; the edge may touch the machine.
ZONES = {
    "engine": "core", "sim": "core", "replay/analyse": "core", "engine/algo": "algo",
    "engine/delta/wire": "core", "engine/delta/cpu": "edge", "engine/real": "edge", "replay/record": "edge", "sim/cli": "edge", "sim/explore": "edge",
    "tests": "edge", "bench": "edge",
}
EDGE_FILES = ["sim/main.cpp", "engine/real/main.cpp"]
# Files that read what a person wrote: they may open files and parse decimals.
BORDER_FILES = ["engine/config/*yaml*", "engine/config/scenario*", "engine/algo/json_reader.cpp"]
# Where element arithmetic is the subject: sums of floats there are in a stated order.
ARITHMETIC = ["engine/delta/*", "engine/algo/*"]
# What decides holds whole numbers only.
DECIDES = ["engine/base/*", "engine/port/*", "engine/proto/*", "sim/kernel/*", "sim/check/*", "sim/fault/*", "sim/defect/*"]

LIBM = ("exp|exp2|expm1|exp10|log|log2|log10|log1p|pow|sin|cos|tan|sincos|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|"
        "atanh|cbrt|hypot|erf|erfc|tgamma|lgamma")

# rule -> pattern on code, for the core.
CODE_RULES = {
    "wall-clock": r"\b(system_clock|steady_clock|high_resolution_clock|utc_clock|sleep_for|sleep_until)\b"
                  r"|\b(gettimeofday|clock_gettime|localtime|gmtime|nanosleep|usleep)\s*\("
                  r"|(?<![\w.>:])(std::)?time\s*\(\s*(nullptr|NULL|0|&)|#\s*include\s*<(chrono|ctime)>",
    "std-random": r"\bstd::(random_device|mt19937(_64)?|default_random_engine|minstd_rand0?|\w+_distribution"
                  r"|(ranges::)?shuffle|(ranges::)?sample|generate_canonical)\b|(?<![\w.>:])(std::)?s?rand\s*\("
                  r"|\b[dlm]rand48\b|\bgetrandom\s*\(|#\s*include\s*<random>",
    "std-hash": r"\bstd::hash\s*<|\bhash_value\s*\(",
    "unordered": r"\b(std::unordered_(multi)?(map|set)|absl::(flat|node)_hash_(map|set)|robin_hood|tsl::)\b"
                 r"|#\s*include\s*<unordered_(map|set)>",
    "node-map": r"\bstd::(multi)?(map|set)\b|#\s*include\s*<(map|set)>",
    "pointer-key": r"\b(std::(multi)?(map|set)|Table|OrderedMap|OrderedSet)\s*<\s*(const\s+)?[\w:]+(\s*const)?\s*\*"
                   r"|\b(std::)?(less|greater)\s*<\s*(const\s+)?[\w:]+\s*\*",
    "address-in-text": r"fmt::ptr\s*\(|reinterpret_cast<\s*(std::)?u?intptr_t\s*>"
                       r"|<<\s*(this\b|static_cast<\s*(const\s+)?void\s*\*\s*>)",
    "thread": r"\bstd::(j?thread|async|atomic\w*|mutex|shared_mutex|recursive_mutex|condition_variable\w*|call_once"
              r"|this_thread|latch|barrier|counting_semaphore|binary_semaphore|promise|future)\b|\bthread_local\b"
              r"|\bpthread_\w+\s*\(|#\s*include\s*<(thread|atomic|mutex|shared_mutex|future|condition_variable|latch"
              r"|barrier|semaphore|stop_token)>",
    "environment": r"\b(getenv|secure_getenv|gethostname|getpid|getuid|getcwd|sysconf|hardware_concurrency|setlocale"
                   r"|std::locale|readdir)\b|#\s*include\s*<(locale|clocale)>",
    "raw-io": r"\bstd::(basic_)?[io]?fstream\b|\bfopen\s*\(|\bstd::filesystem\b|\bstd::(cin|cout|cerr|clog)\b"
              r"|(?<![\w.>:])(std::)?printf\s*\(|#\s*include\s*<(fstream|filesystem|iostream)>",
    "unstable-sort": r"\bstd::(ranges::)?(sort|nth_element|partial_sort|partition|sort_heap)\b|\bstd::priority_queue\b"
                     r"|\bstd::(ranges::)?(make|push|pop)_heap\b|#\s*include\s*<queue>",
    "padding-bytes": r"\bmem(cmp|cpy)\s*\([^;]*\bsizeof\b"
                     r"|\breinterpret_cast<\s*(const\s+)?(std::)?(byte|uint8_t|char|unsigned\s+char)\s*(const\s*)?\*",
    "coroutine": r"\bco_(await|yield|return)\b",
    "locale-number": r"(?<![\w.>])(std::)?(strto(d|f|ld|l|ul|ll|ull)|sto(d|f|ld|i|l|ul|ll|ull)|ato(f|i|l|ll)|sscanf)\s*\(",
    "build-stamp": r"\b__(DATE|TIME|TIMESTAMP)__\b",
    "plain-assert": r"(?<!\w)assert\s*\(|#\s*include\s*<(cassert|assert\.h)>",
    "mutable-static": r"(?m)^\s*(inline\s+)?static\s+(inline\s+)?(?!const\b|constexpr\b|constinit\s+const\b|consteval\b)"
                      r"[\w:<>,\s*&]*?[\w>*&]\s+\w+\s*(=|;|\{)",
    "hidden-state": r"\bstd::(function|move_only_function|any|bind|weak_ptr)\b|\bstd::shared_ptr\s*<(?!\s*const\b)"
                    r"|#\s*include\s*<(functional|any)>",
    "libm": r"\bstd::(" + LIBM + r")[fl]?\s*\(|(?<![\w.>:~])(::)?(" + LIBM + r")[fl]?\s*\((?!\s*(const|double|float)\b)",
}
# Rules for every zone.
EVERYWHERE_CODE = {
    "fast-math": r"#\s*pragma\s+(STDC\s+FP_CONTRACT|GCC\s+optimize)|\bstd::(reduce|transform_reduce)\b|\bstd::execution::",
}
STRING_RULES = {
    "address-in-text": r"%p\b|\{[^{}]*:p\}",
    "locale-number": r"%[-+ #0-9.*]*L?[aefgAEFG](?![\w])",
}
FLOAT_TYPE = r"\b(float|double|long\s+double)\b"
FLOAT_VARIABLE = re.compile(r"\b(?:float|double)\s+(\w+)\s*(?:=|;|\{|,)")
TWO_DRAWS = re.compile(r"\bdraw_\w+\s*\(")
FLOAT_FOLD = re.compile(r"\bstd::(accumulate|inner_product)\s*\([^;]*\b(\d+\.\d*f?|float|double)")

ALGO_MAY = {"libm"}
BORDER_MAY = {"raw-io", "locale-number", "libm", "node-map"}
ALL_RULES = set(CODE_RULES) | set(EVERYWHERE_CODE) | set(STRING_RULES) | {"float-decides", "float-sum", "two-draws"}
EXCUSE = re.compile(r"det-ok:\s*(?P<rule>[\w-]+)\s*:\s*(?P<reason>\S.*)")

BANNED_SYMBOL = re.compile(
    r"_Prime_rehash_policy|_Hash_bytes|_Rb_tree_|(system|steady)_clock::now|random_device|std::(j)?thread::|std::locale"
    r"|std::condition_variable|basic_[io]?f?stream<|std::filesystem|std::(cout|cerr|cin|clog)$"
    r"|^(s?rand|random|[dlm]rand48|getrandom|time|gettimeofday|clock_gettime|nanosleep|usleep|getenv|secure_getenv"
    r"|gethostname|getpid|sysconf|setlocale|readdir|fopen|fopen64|open|pthread_create|strto(d|f|ld))$"
    r"|^(" + LIBM + r")[fl]?$")


def fits(path, globs):
    return any(fnmatch.fnmatch(path, glob) for glob in globs)


def zone_of(path):
    if path in EDGE_FILES:
        return "edge"
    folders = [folder for folder in ZONES if path.startswith(folder + "/")]
    return ZONES[max(folders, key=len)] if folders else "edge"


def pattern_findings(path, code, strings):
    """Yields (position, rule) of each pattern that this file's zone bans."""
    zone = zone_of(path)
    rules = dict(EVERYWHERE_CODE)
    if zone != "edge":
        rules.update(CODE_RULES)
        if fits(path, DECIDES):
            rules["float-decides"] = FLOAT_TYPE
    may = (ALGO_MAY if zone == "algo" else set()) | (BORDER_MAY if fits(path, BORDER_FILES) else set())
    for rule, pattern in rules.items():
        if rule not in may:
            yield from ((found.start() + len(found.group()) - len(found.group().lstrip()), rule)
                        for found in re.finditer(pattern, code))
    if zone != "edge":
        for rule, pattern in STRING_RULES.items():
            yield from ((found.start(), rule) for found in re.finditer(pattern, strings) if rule not in may)


def statement_findings(path, code):
    """Yields (position, rule) of what only a whole statement or file shows."""
    for start, text in cpp_text.statements(code):
        draws = [found.start() for found in TWO_DRAWS.finditer(text)]
        if len(draws) > 1:
            yield start + draws[1], "two-draws"
    if zone_of(path) == "edge" or fits(path, ARITHMETIC):
        return
    yield from ((found.start(), "float-sum") for found in FLOAT_FOLD.finditer(code))
    for name in sorted(set(FLOAT_VARIABLE.findall(code))):
        yield from ((found.start(), "float-sum") for found in re.finditer(rf"(?<![\w.>]){name}\s*[+-]=", code))


def read_excuses(code, comments):
    """Returns ({(line, rule)}, [(line, message)]): what is excused on which line, and excuses that are malformed."""
    excused, bad = {}, []
    code_lines = code.splitlines()
    for number, comment in enumerate(comments.splitlines(), 1):
        if "det-ok" not in comment:
            continue
        found = EXCUSE.search(comment)
        if not found or found["rule"] not in ALL_RULES:
            bad.append((number, "write `det-ok: rule: reason`, with a rule of docs/DETERMINISM.md"))
            continue
        alone = not code_lines[number - 1].strip()
        excused[(number + 1 if alone else number, found["rule"])] = number
    return excused, bad


def scan_text(path, text):
    """Returns the findings of one source text as (line, rule, message); `path` is relative to the root."""
    code, strings, comments = cpp_text.split_text(text)
    lines = cpp_text.Lines(text)
    excused, bad = read_excuses(code, comments)
    used = set()
    source = text.splitlines()
    findings = {(number, "excuse", message) for number, message in bad}
    for position, rule in [*pattern_findings(path, code, strings), *statement_findings(path, code)]:
        number = lines.number(position)
        if (number, rule) in excused:
            used.add((number, rule))
        else:
            findings.add((number, rule, source[number - 1].strip()[:90]))
    for key, written_at in excused.items():
        if key not in used:
            findings.add((written_at, "excuse", f"nothing here needs det-ok: {key[1]}"))
    return sorted(findings)


def scan_symbols(lines):
    """Returns the banned ones among `nm -C -u` output lines."""
    names = [line.split(None, 1)[1].strip() for line in lines if len(line.split(None, 1)) == 2]
    return sorted({name for name in names if BANNED_SYMBOL.search(re.sub(r"@.*$", "", name))})


def scan_objects(build):
    """Yields a line for each banned symbol in the core's objects under `build`; also counts the objects."""
    count, findings = 0, []
    for item in sorted(build.rglob("*.o")):
        path = item.relative_to(build).as_posix()
        folder, mark, rest = path.partition("/CMakeFiles/")
        source = f"{folder}/{rest.partition('/')[2]}".removesuffix(".o")
        if not mark or zone_of(source) == "edge" or fits(source, BORDER_FILES):
            continue
        count += 1
        out = subprocess.run(["nm", "-C", "-u", str(item)], capture_output=True, text=True, check=True).stdout
        for name in scan_symbols(out.splitlines()):
            if not (zone_of(source) == "algo" and re.fullmatch(rf"({LIBM})[fl]?", name)):
                findings.append(f"{source}: [symbol] {name[:100]}")
    return count, findings


def default_sources():
    for top in ["engine", "sim", "replay", "tests", "bench"]:
        yield from sorted(item for item in (ROOT / top).rglob("*") if item.suffix in {".h", ".cpp", ".cu", ".cuh"})


def main(arguments):
    if arguments[:1] == ["--objects"] and len(arguments) == 2:
        count, findings = scan_objects(pathlib.Path(arguments[1]))
        if count == 0:
            findings = [f"{arguments[1]}: no object of the core there"]
        what = "objects"
    else:
        files = [pathlib.Path(argument).resolve() for argument in arguments] or list(default_sources())
        findings = []
        for item in files:
            path = item.relative_to(ROOT).as_posix() if item.is_relative_to(ROOT) else item.as_posix()
            for number, rule, message in scan_text(path, item.read_text(encoding="utf-8")):
                findings.append(f"{path}:{number}: [{rule}] {message}")
        count, what = len(files), "files"
    print("\n".join(findings + [f"determinism: {count} {what}, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
