"""Foreign text on a terminal: it must not move the cursor, change colors, or reorder the visible text.

Names, messages and settings come from charts, hooks and every user who may write a custom resource. Pure.
"""

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1 (0x9b begins an escape sequence on its own)
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # separators, characters that hide or reorder text
    "\ud800-\udfff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e0fff"  # surrogates, interlinear marks, non-characters, tags
    "]"
)


def is_safe(text: str, *, allow: str = "") -> bool:
    """Return whether a terminal shows ``text`` unchanged; characters in ``allow`` are accepted."""
    return all(match[0] in allow for match in _UNSAFE.finditer(text))


def printable(text: str, *, allow: str = "") -> str:
    r"""Return ``text`` with every unprintable character as an escape: ``\n``, ``\x1b``, ``\u202e``."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in allow else _escape(match[0]), text)


def json_printable(document: str, *, yaml: bool = False) -> str:
    r"""Return a JSON document with escapes of JSON (or of YAML) for the characters that `printable` escapes.

    Line breaks are kept.
    """
    escape = _yaml_escape if yaml else _json_escape
    return _UNSAFE.sub(lambda match: "\n" if match[0] == "\n" else escape(match[0]), document)


def _escape(character: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    code = ord(character)
    if character in named:
        return named[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _yaml_escape(character: str) -> str:
    """Return a character as an escape for YAML, which has no surrogate pairs."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
