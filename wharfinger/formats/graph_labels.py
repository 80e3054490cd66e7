r"""Untrusted text in the labels of graphs, in Graphviz' DOT language and in Mermaid. Pure.

A quoted string in DOT has one escape (``\"``) and passes backslashes on to the code that uses the string. A label has escapes of
its own (``\N`` is the node's name) and also HTML entities. Therefore control characters are made visible, backslashes are
doubled, and ``&`` is written as an entity. Other characters are kept as they are, because Graphviz reads its input as UTF-8, and
supports numeric entities (``&#35;``) for small numbers only. In Mermaid every character that could be misread is written as an
entity of Mermaid's own form (``#35;``).
"""

from typing import Final

from wharfinger.formats.terminal_text import printable

_HARMLESS: Final = frozenset(" ,-./:=+_")


def dot_label(text: str) -> str:
    """Escape a text for a quoted label in DOT."""
    return printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def mermaid_label(text: str) -> str:
    """Escape a text for a quoted label in Mermaid.

    All characters become entities, except letters and digits of ASCII and some harmless characters.
    """
    return "".join(
        character if character in _HARMLESS or (character.isascii() and character.isalnum()) else f"#{ord(character)};"
        for character in printable(text)
    )
