#!/usr/bin/env python3
"""Prints the exit status that a scenario file promises: by `verdict` under its `expect` key, 0 if it names none.

usage: expected_exit.py SCENARIO.yaml
"""
import pathlib
import re
import sys

EXIT_OF = {"held": 0, "safety": 1, "inconclusive": 2, "liveness": 3}


def expected_exit(text):
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
