"""The model of a list: its columns, its rows, which of them a user chose, and their text in each format.

Pure. Every list of `wharfinger get` is one `Listing`; options such as ``-l`` and ``-o jsonpath`` are implemented here, once.
Most texts in rows come from packages and the cluster and are not trusted: control characters are escaped.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wharfinger.debug.errors import DebugError
from wharfinger.debug.printing.output import OUTPUT_FORMATS, render
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_table import layout
from wharfinger.runtime.inspector import Inspector

if TYPE_CHECKING:
    from wharfinger.kube.selectors import LabelSelector  # imported at run time only for -l

TABLE: Final = "table"
WIDE: Final = "wide"
NAME: Final = "name"
JSON_PATH: Final = "jsonpath="
OUTPUTS: Final = (TABLE, WIDE, NAME, *OUTPUT_FORMATS, JSON_PATH)
_DIGEST_DIGITS: Final = 12


class NotListedError(DebugError):
    """A list does not support a selection, or has no row of the given name."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list that `get` prints. If ``wide`` is True, it is shown with ``-o wide`` only."""

    title: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row: ``cells`` for all columns, and ``document``, which is printed with ``-o json``.

    ``key`` identifies the row in later answers. ``name`` is printed with ``-o name``; "" for a row without one. A row that is not
    ``in_table`` is printed only by name and in documents.
    """

    key: tuple[str, ...]
    name: str
    cells: tuple[str, ...]
    document: JsonObject
    namespace: str = ""
    labels: Mapping[str, JsonValue] = field(default_factory=dict)
    in_table: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that a user chose: by ``name``, ``namespace`` and labels; "" and None choose all."""

    name: str | None = None
    namespace: str = ""
    labels: "LabelSelector | None" = None

    def takes(self, row: Row) -> bool:
        """Return whether a row has the chosen namespace and labels."""
        if self.namespace and row.namespace != self.namespace:
            return False
        return self.labels is None or self.labels.matches({"metadata": {"labels": dict(row.labels)}})


@dataclass(frozen=True, slots=True)
class Listing:
    """One list that `wharfinger get` can print.

    ``read`` returns all rows, or those of the selected name. ``document`` makes one document of the chosen rows. ``namespaced``
    is true if rows have a namespace, and ``labelled`` if they have labels.
    """

    what: str
    columns: tuple[Column, ...]
    read: Callable[[Inspector, Selection], Awaitable[tuple[Row, ...]]]
    document: Callable[[Sequence[Row], Selection], JsonValue]
    when_empty: str
    namespaced: bool = True
    labelled: bool = True

    def check(self, selection: Selection) -> None:
        """Raise NotListedError if rows are to be selected by a namespace or labels that the list does not have."""
        if selection.namespace and not self.namespaced:
            raise NotListedError(f"the rows of `get {self.what}` have no namespaces; leave -n out")
        if selection.labels is not None and not self.labelled:
            raise NotListedError(f"{self.what} have no labels to select by; leave -l out")

    async def rows(self, inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
        """Return the chosen rows. Raises NotListedError, and the errors of the list for an unknown name."""
        self.check(selection)
        return tuple(row for row in await self.read(inspector, selection) if selection.takes(row))


def listed_text(
    listing: Listing,
    rows: Sequence[Row],
    selection: Selection,
    output: str,
    columns: int | None,
    *,
    headers: bool = True,
) -> str:
    """Return rows in a format; "" if there is nothing to show. ``columns``: the width of the terminal, None without one.

    Raises JsonPathError.
    """
    if output in (TABLE, WIDE):
        return "".join(f"{line}\n" for line in table_lines(listing, rows, output, columns, headers=headers))
    if output == NAME:
        return "".join(f"{printable(row.name)}\n" for row in rows if row.name)
    return document_text(listing.document(rows, selection), output)


def document_text(document: JsonValue, output: str) -> str:
    """Return a document as JSON, as YAML, or by a JSONPath template. Raises JsonPathError."""
    if output.startswith(JSON_PATH):
        from wharfinger.formats.json_path.template import parse_template, render_template  # noqa: PLC0415 - seldom needed

        text = render_template(parse_template(output.removeprefix(JSON_PATH)), document)
        return printable(text, allow="\n\t")
    return render(document, "json" if output == "json" else "yaml")


def table_lines(
    listing: Listing, rows: Sequence[Row], output: str, columns: int | None, *, headers: bool = True
) -> list[str]:
    """Return the lines of the table; an empty list if there are no rows."""
    found = [row for row in rows if row.in_table]
    if not found:
        return []
    shown = [at for at, column in enumerate(listing.columns) if output == WIDE or not column.wide]
    titles = [listing.columns[at].title for at in shown]
    lines = layout(titles, [[row.cells[at] for at in shown] for row in found], columns)
    return lines if headers else lines[1:]


def labels_of(texts: Iterable[str]) -> JsonObject:
    """Return the labels in texts such as ``team=web``."""
    return {key: value for key, _, value in (text.partition("=") for text in texts)}


def short_digest(digest: str) -> str:
    """Return the first digits of a digest, without the name of its algorithm."""
    return digest.removeprefix("sha256:")[:_DIGEST_DIGITS]


def read_output(text: str) -> str:
    """Return the format that a user typed. Raises JsonPathError for a template that cannot be read, ValueError for an unknown
    format.
    """
    if text.startswith(JSON_PATH):
        from wharfinger.formats.json_path.template import parse_template  # noqa: PLC0415 - seldom needed

        parse_template(text.removeprefix(JSON_PATH))
        return text
    if text not in OUTPUTS or text == JSON_PATH:
        from difflib import get_close_matches  # noqa: PLC0415 - seldom needed

        known = [each for each in OUTPUTS if each != JSON_PATH]
        near = next(iter(get_close_matches(text, known, 1)), "")
        meant = f"did you mean {near!r}?" if near else f"known are {', '.join(known)} and {JSON_PATH}TEMPLATE"
        raise ValueError(f"there is no format {text!r}; {meant}")
    return text
