"""C++ source as the lints see it: code without comments and strings, strings alone, statements, and functions."""
import bisect
import re

_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<delimiter>[^()\\ ]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def split_text(text):
    """Returns (code, strings, comments): three texts of equal length and lines, each with only its own part left."""
    code, strings, comments = [], [], []
    end = 0
    for token in _TOKEN.finditer(text):
        between, found = text[end:token.start()], token.group()
        code.append(between)
        strings.append(_blank(between))
        comments.append(_blank(between))
        is_comment = found.startswith("/")
        is_include = re.search(r"#\s*include\s*$", between) is not None
        comments.append(found if is_comment else _blank(found))
        strings.append(_blank(found) if is_comment or is_include else found)
        code.append(_blank(found) if is_comment else found if is_include else '"' + _blank(found[1:-1]) + '"')
        end = token.end()
    code.append(text[end:])
    strings.append(_blank(text[end:]))
    comments.append(_blank(text[end:]))
    return "".join(code), "".join(strings), "".join(comments)


class Lines:
    """Turns positions into line numbers."""

    def __init__(self, text):
        self.starts = [0] + [place.end() for place in re.finditer("\n", text)]

    def number(self, position):
        return bisect.bisect_right(self.starts, position)


# What stands before the brace of a block; any other brace begins an initialiser, which belongs to its statement.
_BLOCK_HEAD = re.compile(r"(^|[;{}):]|\b(else|do|try|const|noexcept|override|final|mutable|namespace))\s*$")


def statements(code):
    """Yields (start, text) of each statement of `code`; the head of a block counts as one."""
    stack, start = [], 0
    for place in re.finditer(r"[;{}]", code):
        mark = place.group()
        if mark == "{":
            is_block = _BLOCK_HEAD.search(code[start:place.start()]) is not None
            stack.append(is_block)
            ends = is_block
        elif mark == "}":
            ends = stack.pop() if stack else True
        else:
            ends = True
        if ends:
            yield start, code[start:place.start()]
            start = place.end()
    yield start, code[start:]


# A scope that holds functions; every other block is a body.
_SCOPE_HEAD = re.compile(r'\b(namespace|class|struct|union|enum)\b[^()]*$|extern\s*"\s*"\s*$')


def functions(code):
    """Yields (first line, last line) of the body of each outermost function, head included."""
    code = re.sub(r"^[ \t]*#.*?(?<!\\)$", lambda m: _blank(m.group()), code, flags=re.MULTILINE | re.DOTALL)
    lines = Lines(code)
    depth, body_start, head_start = 0, None, 0
    for place in re.finditer(r"[;{}]", code):
        mark = place.group()
        if body_start is None:
            head = code[head_start:place.start()]
            is_whole = "(" in head and head.count("(") == head.count(")")  # Else a brace among arguments.
            if mark == "{" and is_whole and not _SCOPE_HEAD.search(head):
                body_start, depth = head_start + len(head) - len(head.lstrip()), 1
            head_start = place.end()
            continue
        depth += {"{": 1, "}": -1, ";": 0}[mark]
        if depth == 0:
            yield lines.number(body_start), lines.number(place.start())
            body_start, head_start = None, place.end()
