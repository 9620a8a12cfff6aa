#!/usr/bin/env python3
"""Length limits of files and functions, and marks of unfinished work; prints the median length.

usage: check_sizes.py [ROOT]       exit 1 for a file over 1,000 lines, a function over 70, or an unfinished
                                   mark; a file over 500 lines is a warning
"""
import pathlib
import re
import statistics
import subprocess
import sys

import cpp_text

WARN_LINES = 500
FAIL_LINES = 1000
FUNCTION_LINES = 70
CODE_ENDINGS = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake")
# Written in two halves, so that this file passes its own check.
MARK = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def tracked_files(root):
    out = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=True).stdout
    return [path for path in out.splitlines() if path.endswith(CODE_ENDINGS) and (root / path).is_file()]


def check_text(path, text):
    """Returns (failures, warnings) of one file."""
    failures, warnings = [], []
    lines = text.splitlines()
    if len(lines) > FAIL_LINES:
        failures.append(f"{path}:{FAIL_LINES}: [size] {len(lines)} lines; the limit is {FAIL_LINES}")
    elif len(lines) > WARN_LINES:
        warnings.append(f"{path}:{WARN_LINES}: warning: [size] {len(lines)} lines; more than {WARN_LINES}: one idea a file")
    if path.endswith((".h", ".cpp", ".cu", ".cuh")):
        for first, last in cpp_text.functions(cpp_text.split_text(text)[0]):
            if last - first + 1 > FUNCTION_LINES:
                failures.append(f"{path}:{first}: [size] a function of {last - first + 1} lines; the limit is {FUNCTION_LINES}")
    for number, line in enumerate(lines, 1):
        if MARK.search(line):
            failures.append(f"{path}:{number}: [mark] unfinished: {line.strip()[:80]}")
    return failures, warnings


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    failures, lengths = [], []
    for path in tracked_files(root):
        text = (root / path).read_text(encoding="utf-8")
        lengths.append(len(text.splitlines()))
        failed, warned = check_text(path, text)
        failures += failed
        for line in warned + failed:
            print(line)
    median = statistics.median(lengths) if lengths else 0
    print(f"sizes: {len(lengths)} files, median {median:.0f} lines, longest {max(lengths, default=0)}, {len(failures)} findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
