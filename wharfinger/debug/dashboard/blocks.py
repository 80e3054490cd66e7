"""The model of a page: sections with tables, facts, lists, logs and pictures. The templates render it as HTML. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Tone(StrEnum):
    """The look of a text. A color never adds information: the text has the same meaning without it."""

    PLAIN = ""
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    DIM = "dim"


@dataclass(frozen=True, slots=True)
class Cell:
    """One text. If ``href`` is set, the text is a link to this address, relative to the address of the dashboard."""

    text: str
    tone: Tone = Tone.PLAIN
    href: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row is its header. ``when_empty`` is shown instead of a table without rows."""

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    when_empty: str
    kind: str = "table"


@dataclass(frozen=True, slots=True)
class Facts:
    """A block that lists names with their values."""

    pairs: tuple[tuple[str, Cell], ...]
    kind: str = "facts"


@dataclass(frozen=True, slots=True)
class Items:
    """A list of texts."""

    texts: tuple[Cell, ...]
    when_empty: str
    kind: str = "items"


@dataclass(frozen=True, slots=True)
class Preformatted:
    """Lines in a fixed font; ``label`` names them for a screen reader."""

    label: str
    lines: tuple[str, ...]
    when_empty: str
    key: str
    kind: str = "lines"


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing as safe SVG, and its content as text."""

    svg: str
    label: str
    text: str
    kind: str = "picture"


@dataclass(frozen=True, slots=True)
class Folded:
    """Lines that are hidden until a reader unfolds them; ``key`` identifies them in the next version of the page."""

    key: str
    summary: str
    lines: Preformatted
    kind: str = "folded"


Block: TypeAlias = Table | Facts | Items | Preformatted | Picture | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, which is replaced as a whole when it changes; ``key`` is its identifier on the page."""

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page. ``address`` is its path with the query.

    Screen readers read the ``announcement`` aloud when it changes. ``find`` is the text by which the list of packages is
    filtered; None on a page without that list.
    """

    title: str
    address: str
    sections: tuple[Section, ...]
    announcement: str = ""
    find: str | None = None
