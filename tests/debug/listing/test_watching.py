"""Watched lists. The first answer is the whole list, and later answers contain only rows that are new, changed or deleted."""

from dataclasses import replace

from wharfinger.debug.listing.listing import Row, Selection
from wharfinger.debug.listing.lists import listing_of
from wharfinger.debug.listing.watching import WatchedList

LISTING = listing_of("pools")


def row(name: str, state: str = "serving", *, document: str = "1") -> Row:
    return Row((name,), name, (name, state, *["0"] * 8), {"v": document})


def test_a_watched_table_prints_only_changed_rows() -> None:
    shown = WatchedList(LISTING, Selection(), "table", None)
    assert shown.update([]) == ""
    first = shown.update([row("a"), row("b")])
    assert first.splitlines()[0].split()[:2] == ["NAME", "STATE"]
    assert [line.split()[:2] for line in first.splitlines()[1:]] == [["a", "serving"], ["b", "serving"]]
    assert shown.update([row("a"), row("b", document="2")]) == ""
    changed = shown.update([row("a"), row("b", "unfit"), row("c")])
    assert [line.split()[:2] for line in changed.splitlines()] == [["b", "unfit"], ["c", "serving"]]
    assert shown.update([row("a"), row("c")]) == "b   (gone)\n"
    assert shown.update([replace(row("a"), in_table=False), row("c")]) == ""


def test_a_watched_table_has_no_headers_on_request() -> None:
    shown = WatchedList(LISTING, Selection(), "table", None, headers=False)
    assert shown.update([row("a")]).split()[0] == "a"


def test_watched_names_and_documents_are_printed_when_they_change() -> None:
    names = WatchedList(LISTING, Selection(), "name", None)
    assert [names.update(rows) for rows in ([row("a")], [row("a", document="2"), row("b")], [])] == ["a\n", "b\n", ""]
    yaml = WatchedList(LISTING, Selection(), "yaml", None)
    assert yaml.update([row("a")]) == "pools:\n  a:\n    v: '1'\n"
    assert yaml.update([row("a", document="2")]) == "---\nv: '2'\n"
    path = WatchedList(LISTING, Selection(), "jsonpath={range .pools.*}{.v};{end}", None)
    assert path.update([row("a"), row("b")]) == "1;1;"
    assert path.update([row("a", document="3"), row("b")]) == "3;"
    assert path.update([row("a", document="3"), row("b")]) == ""
