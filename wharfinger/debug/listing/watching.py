"""A list that is watched (`get -w`): first all rows, then each row that is new, has changed or is gone.

Pure. In a table, a row that is gone is printed as its name and ``(gone)``; names and documents of rows that are gone are not
printed, as in kubectl. A JSONPath template is applied to a document of the rows that are new or have changed.
"""

from collections.abc import Sequence
from typing import Final

from wharfinger.debug.listing.listing import (
    JSON_PATH,
    NAME,
    TABLE,
    WIDE,
    Listing,
    Row,
    Selection,
    document_text,
    listed_text,
    table_lines,
)
from wharfinger.formats.terminal_text import printable

GONE: Final = "(gone)"


class WatchedList:
    """The output of a watched list (`get -w`). It keeps the rows that were shown last, to print only the differences."""

    def __init__(
        self, listing: Listing, selection: Selection, output: str, columns: int | None, *, headers: bool = True
    ) -> None:
        self._listing = listing
        self._selection = selection
        self._output = output
        self._columns = columns
        self._headers = headers
        self._shown: dict[tuple[str, ...], Row] | None = None
        self._titled = False

    def update(self, rows: Sequence[Row]) -> str:
        """Return the text to print for the present rows; "" if nothing has changed."""
        before = self._shown
        self._shown = {row.key: row for row in rows}
        if before is None and self._output not in (TABLE, WIDE):
            return listed_text(self._listing, rows, self._selection, self._output, self._columns)
        old = before or {}
        changed = {row.key for row in rows if old.get(row.key) is None or _differs(old[row.key], row, self._output)}
        if self._output in (TABLE, WIDE):
            return self._table(rows, changed, [row for key, row in old.items() if key not in self._shown])
        chosen = [row for row in rows if row.key in changed]
        if self._output.startswith(JSON_PATH):  # a template applies to the document of a list, not to a single row
            return listed_text(self._listing, chosen, self._selection, self._output, self._columns) if chosen else ""
        return "".join(map(self._text, chosen))

    def _table(self, rows: Sequence[Row], changed: set[tuple[str, ...]], gone: Sequence[Row]) -> str:
        """Lay out the whole table and return its changed lines, so that the columns are as wide as in the whole table."""
        shown = [row for row in rows if row.in_table]
        lines = table_lines(self._listing, shown, self._output, self._columns)
        text = ""
        if lines and not self._titled and self._headers:
            text = f"{lines[0]}\n"
        self._titled = self._titled or bool(lines)
        text += "".join(f"{line}\n" for row, line in zip(shown, lines[1:], strict=False) if row.key in changed)
        return text + "".join(f"{printable(' '.join(row.key))}   {GONE}\n" for row in gone if row.in_table)

    def _text(self, row: Row) -> str:
        if self._output == NAME:
            return f"{printable(row.name)}\n" if row.name else ""
        text = document_text(row.document, self._output)
        return f"---\n{text}" if self._output == "yaml" else text


def _differs(before: Row, after: Row, output: str) -> bool:
    if output in (TABLE, WIDE):
        return (before.cells, before.in_table) != (after.cells, after.in_table)
    return output != NAME and before.document != after.document
