"""Globs as regular expressions, for patterns that are not trusted: a match takes at most quadratic time.

Each star except the last stops at the first place where the next part of the pattern fits, and never tries another place (an
atomic group). No match is missed: a later place would only leave less text for the rest of the pattern, and the next star can
match all the text that a later place would skip.

=========  ============================================  =============================================================
           path globs (``.gitignore``, wildmatch)        text globs (Argo CD)
=========  ============================================  =============================================================
``*``      text within one segment                       any text, also ``/``
``**``     alone in a segment: any number of segments    as ``*``
``?``      one character, but not ``/``                  one character
``[a-z]``  one of these; after ``!``, ``^``: any other   one of these; after ``!``, ``^``: any other
``{a,b}``  these characters themselves                   one of these texts; at most MAX_ALTERNATIVES in all
``\\``     the next character itself                     the next character itself
=========  ============================================  =============================================================
"""

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

MAX_PATTERN: Final = 1024
"""The maximum length of a pattern, in characters."""
MAX_ALTERNATIVES: Final = 64
_NOTHING: Final = re.compile(r"(?!)")
_STAR: Final = "*"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


def path_glob(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for a glob pattern. It matches whole paths, which must not begin or end with a slash.

    A pattern that is too long matches nothing.
    """
    if len(pattern) > MAX_PATTERN:
        return _NOTHING
    groups: list[list[str]] = [[]]
    segments = pattern.split("/")
    for segment in segments:
        if segment == "**":
            groups.append([])
        else:
            groups[-1].append(_pieces(segment, "[^/]", "(?!/)"))
    first, *others = ["/".join(group) for group in groups]
    if not others:
        return re.compile(first + r"\Z", re.DOTALL)
    made = f"{first}/" if first else ""
    for group in others[:-1]:
        made += f"(?>(?:[^/]+/)*?{group}/)" if group else ""
    last = others[-1]
    return re.compile(made + (rf"(?:[^/]+/)*?{last}\Z" if last else r".+\Z"), re.DOTALL)


def text_glob(pattern: str) -> re.Pattern[str]:
    """Return an expression that matches whole texts.

    A pattern that is too long, or has too many alternatives, matches nothing.
    """
    parts = _BRACES.split(pattern)
    choices = [part.split(",") if number % 2 else [part] for number, part in enumerate(parts)]
    count = 1
    for each in choices:
        count *= len(each)
    if len(pattern) > MAX_PATTERN or count > MAX_ALTERNATIVES:
        return _NOTHING
    whole = "|".join(_pieces("".join(chosen), ".", "") for chosen in product(*choices))
    return re.compile(rf"(?:{whole})\Z", re.DOTALL)


def _pieces(glob: str, any_one: str, before_class: str) -> str:
    """Return the regular expression for a segment of a path glob, or for a text glob whose braces are already replaced."""
    chunks = [""]
    for token in _tokens(glob, any_one, before_class):
        if token == _STAR:
            chunks.append("")
        else:
            chunks[-1] += token
    first, *others = chunks
    if not others:
        return first
    inner = "".join(f"(?>{any_one}*?{chunk})" for chunk in others[:-1] if chunk)
    return (
        f"(?>{first}{inner}(?:{any_one}*{others[-1]})(?=/|\\Z))" if any_one != "." else f"{first}{inner}.*{others[-1]}"
    )


def _tokens(glob: str, any_one: str, before_class: str) -> Iterator[str]:
    """Yield ``*`` for each star, and an expression for each other part of the pattern."""
    position = 0
    while position < len(glob):
        character = glob[position]
        position += 1
        if character == "*":
            yield _STAR
        elif character == "?":
            yield any_one
        elif character == "\\":
            yield re.escape(glob[position : position + 1]) or r"\\"
            position += 1
        elif character == "[":
            end = glob.find("]", position + 1 + (glob[position : position + 1] in {"!", "^"}))
            if end < 0:
                yield r"(?!)"  # a class without an end matches nothing
                return
            yield before_class + _class(glob[position:end])
            position = end + 1
        else:
            yield re.escape(character)


def _class(inner: str) -> str:
    """Return the regular expression for a class of characters; a range whose ends are in the wrong order is empty."""
    negated = inner[:1] in {"!", "^"}
    text = inner[1:] if negated else inner
    members = ""
    while text:
        if len(text) > 2 and text[1] == "-":
            members += f"{re.escape(text[0])}-{re.escape(text[2])}" if text[0] <= text[2] else ""
            text = text[3:]
        else:
            members += re.escape(text[0])
            text = text[1:]
    if not members:
        return "(?s:.)" if negated else "(?!)"
    return f"[{'^' if negated else ''}{members}]"
