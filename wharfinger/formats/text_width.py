"""The width of untrusted text in columns, and its shortening to fit. Pure."""

import unicodedata
from typing import Final

_ELLIPSIS: Final = "…"


def width(text: str) -> int:
    """Return the width of printable text: wide East Asian characters count as two, combining marks and joiners as none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def shorten(text: str, columns: int) -> str:
    """Return ``text`` in at most ``columns`` (at least one), with an ellipsis if something was cut."""
    if width(text) <= columns:
        return text
    used = 1
    kept = []
    for character in text:
        used += _columns(character)
        if used > columns:
            break
        kept.append(character)
    return "".join(kept) + _ELLIPSIS


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:  # joiners are allowed: some scripts and emoji need them
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
