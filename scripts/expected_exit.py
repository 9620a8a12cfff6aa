#!/usr/bin/env python3
"""Prints the exit status that a scenario file promises: that of a comment `# exit: N` of its own, else by `verdict` under
its `expect` key, else 0.

usage: expected_exit.py SCENARIO.yaml
"""
import pathlib
import re
import sys

EXIT_OF = {"held": 0, "violation": 1, "inconclusive": 2, "liveness": 3}


def expected_exit(text):
    promised = re.search(r"^\s*# exit: (\d+)$", text, re.MULTILINE)
    if promised:
        return int(promised[1])
    block = re.search(r"^(?P<indent> *)expect:(?P<body>.*(?:\n(?:(?P=indent) +.*|\s*(?:#.*)?))*)", text, re.MULTILINE)
    verdict = re.search(r"(?:^|[{,\s])verdict:\s*[\"']?(\w+)", block["body"]) if block else None
    return EXIT_OF[verdict[1]] if verdict else 0


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 64
    try:
        print(expected_exit(pathlib.Path(arguments[0]).read_text(encoding="utf-8")))
    except KeyError as unknown:
        print(f"{arguments[0]}: verdict {unknown} is none of {', '.join(EXIT_OF)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
