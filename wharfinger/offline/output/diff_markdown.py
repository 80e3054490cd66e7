"""A comparison as Markdown, for a comment on a review: the summary first, then each object's diff, folded."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from wharfinger.formats.terminal_text import printable
from wharfinger.offline.output.comparison import Comparison, ObjectChange, Verb, changed_images
from wharfinger.offline.output.dangers import dangers_of
from wharfinger.offline.output.diff_text import unified_lines
from wharfinger.offline.store.identity import shown

_TICKS: Final = re.compile("`+")
_SHORTEST_FENCE: Final = 3


def diff_markdown(comparison: Comparison) -> str:
    """Return the comparison as Markdown. Text from the tree is escaped: it cannot end its block or become markup."""
    return "".join(f"{line}\n" for line in _document(comparison))


def _document(comparison: Comparison) -> Iterator[str]:
    if not comparison.changes:
        yield "**No differences in the compared objects.**" if comparison.incomparable else "**No differences.**"
    else:
        yield f"**{', '.join(f'{comparison.count(verb)} {verb}' for verb in Verb)}**"
    old, new = changed_images(comparison.changes)
    yield from _list("Dangers", dangers_of(comparison.changes))
    yield from _list("New images", new)
    yield from _list("Images no longer used", old)
    yield from _list("Not compared, because they failed", [shown(who) for who in comparison.incomparable])
    yield from _list("Not compared, because their producers failed", [shown(who) for who in comparison.unknown])
    for change in comparison.changes:
        yield from ("", "<details>", f"<summary>{escape(printable(shown(change.id)))}: {change.verb}</summary>", "")
        yield from _block(change)
        yield from ("", "</details>")


def _list(title: str, entries: Iterable[str]) -> Iterator[str]:
    found = [f"* {_code(entry)}" for entry in entries]
    if found:
        yield from ("", f"{title}:", "", *found)


def _block(change: ObjectChange) -> Iterator[str]:
    lines = [printable(line) for line in unified_lines(change)]
    fence = _fence("\n".join(lines), _SHORTEST_FENCE)
    yield from (f"{fence}diff", *lines, fence)


def _code(text: str) -> str:
    """Return a text as a code span, in which nothing is markup."""
    shown_text = printable(text).replace("\n", " ")
    fence = _fence(shown_text, 1)
    return f"{fence} {shown_text} {fence}"


def _fence(text: str, least: int) -> str:
    """Return a fence of at least ``least`` backticks, longer than each run of backticks in the text."""
    return "`" * max(least, 1 + max((len(found) for found in _TICKS.findall(text)), default=0))
