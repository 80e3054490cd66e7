"""A comparison as one HTML page without scripts or other files: the summary first, then each object's diff.

Names and values come from the tree and are untrusted. All text is escaped, and the page forbids a browser to load
or run anything except the style in the page.
"""

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from wharfinger.formats.terminal_text import printable
from wharfinger.offline.output.comparison import Comparison, ObjectChange, Verb, changed_images
from wharfinger.offline.output.dangers import dangers_of
from wharfinger.offline.output.diff_text import unified_lines
from wharfinger.offline.store.identity import shown

_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>wharfinger diff</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
summary { cursor: pointer; font-weight: 600; margin: .75rem 0 .25rem; }
pre { border: 1px solid #8884; border-radius: 6px; overflow-x: auto; padding: .5rem; margin: 0; }
.dangers { border-left: 4px solid #b3261e; padding-left: 1rem; }
.added { color: #1a7f37; } .deleted { color: #b3261e; } .place { color: #57606a; }
</style>
</head>
<body>
<h1>Differences</h1>"""
_CLASSES: Final = {"+": "added", "-": "deleted", "@": "place"}


def diff_html(comparison: Comparison) -> str:
    """Return the comparison as an HTML page."""
    return "".join(f"{line}\n" for line in _page(comparison))


def _page(comparison: Comparison) -> Iterator[str]:
    yield _HEAD
    counts = ", ".join(f"{comparison.count(verb)} {verb}" for verb in Verb)
    none = "No differences in the compared objects." if comparison.incomparable else "No differences."
    yield f"<p>{counts if comparison.changes else none}</p>"
    old, new = changed_images(comparison.changes)
    yield from _list("Dangers", dangers_of(comparison.changes), "dangers")
    yield from _list("New images", new, "images")
    yield from _list("Images no longer used", old, "images")
    yield from _list("Not compared, because they failed", map(shown, comparison.incomparable), "incomparable")
    yield from _list("Not compared, because their producers failed", map(shown, comparison.unknown), "incomparable")
    for change in comparison.changes:
        yield from _object(change)
    yield "</body>\n</html>"


def _list(title: str, entries: Iterable[str], name: str) -> Iterator[str]:
    items = [f"<li>{_text(entry)}</li>" for entry in entries]
    if items:
        yield from (f'<section class="{name}"><h2>{title}</h2>', "<ul>", *items, "</ul></section>")


def _object(change: ObjectChange) -> Iterator[str]:
    yield f"<details open><summary>{_text(shown(change.id))}: {change.verb}</summary>"
    lines = (_line(line) for line in unified_lines(change))
    yield f"<pre>{chr(10).join(lines)}</pre></details>"


def _line(line: str) -> str:
    kind = _CLASSES.get(line[:1])
    return f'<span class="{kind}">{_text(line)}</span>' if kind else _text(line)


def _text(text: str) -> str:
    return escape(printable(text))
