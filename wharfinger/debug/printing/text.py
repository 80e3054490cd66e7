"""Text of strangers in columns: what is safe to show, and how wide it is. Pure."""

import unicodedata
from typing import Final

_ELLIPSIS: Final = "…"


def width(text: str) -> int:
    """Columns that printable text takes: wide East Asian characters count twice, combining marks and joiners not at all."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def shorten(text: str, columns: int) -> str:
    """``text`` in at most ``columns`` (at least one), with an ellipsis where something was cut."""
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
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:  # joiners are safe: scripts and emoji need them
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
