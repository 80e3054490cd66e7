"""A comparison as text: for people, unified diffs of YAML and a summary; for programs, JSON."""

import difflib
import json
from collections.abc import Iterator
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.listing import listed
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.offline.output.comparison import Comparison, ObjectChange, Verb, changed_images
from wharfinger.offline.output.dangers import dangers_of
from wharfinger.offline.output.documents import ordered
from wharfinger.offline.store.identity import shown

_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_RESET = "\x1b[0m"
MOST_NAMED: Final = 5


def unified(comparison: Comparison, *, coloured: bool = False) -> str:
    """Return a unified diff for each object that differs; apart from colors, it has no control characters for terminals."""
    lines = (printable(line) for change in comparison.changes for line in unified_lines(change))
    return "".join(f"{_coloured(line) if coloured else line}\n" for line in lines)


def summary_lines(comparison: Comparison) -> list[str]:
    """Return the summary: counts, images, dangers, and the objects that could not be compared."""
    counts = ", ".join(f"{comparison.count(verb)} {verb}" for verb in Verb)
    none = "no differences in the compared objects" if comparison.incomparable else "no differences"
    lines = [f"objects: {counts}" if comparison.changes else none]
    old, new = changed_images(comparison.changes)
    lines += [f"image no longer used: {image}" for image in old]
    lines += [f"new image: {image}" for image in new]
    lines += [f"danger: {line}" for line in dangers_of(comparison.changes)]
    lines += [f"not compared, because it failed: {shown(who)}" for who in comparison.incomparable]
    lines += [f"not compared, because its producer failed: {shown(who)}" for who in comparison.unknown]
    if comparison.unsearched:
        named = listed(map(shown, comparison.unsearched), MOST_NAMED)
        lines.append(
            f"not compared: Flux, Argo CD and Wharfinger objects that {named} may make; --render-all compares them"
        )
    return lines


def diff_json(comparison: Comparison) -> str:
    """Return the comparison as ASCII JSON, without control characters for terminals."""
    old, new = changed_images(comparison.changes)
    changes: list[JsonValue] = [
        {
            "change": change.verb.value,
            "kind": change.id.kind.partition(".")[0],
            "group": change.id.kind.partition(".")[2],
            "namespace": change.id.namespace,
            "name": change.id.name,
            "before": change.before,
            "after": change.after,
        }
        for change in comparison.changes
    ]
    document: JsonObject = {
        "summary": {verb.value: comparison.count(verb) for verb in Verb},
        "images": {"removed": [*old], "added": [*new]},
        "dangers": [*dangers_of(comparison.changes)],
        "notSearched": [shown(who) for who in comparison.unsearched],
        "notCompared": [shown(who) for who in (*comparison.incomparable, *comparison.unknown)],
        "changes": changes,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def unified_lines(change: ObjectChange) -> Iterator[str]:
    """Yield the lines of a unified diff of one object, as they are: text from the tree may have control characters."""
    before, after = _lines(change.before), _lines(change.after)
    name = shown(change.id)
    old, new = (name if side is not None else "/dev/null" for side in (change.before, change.after))
    yield from (line.rstrip("\n") for line in difflib.unified_diff(before, after, old, new, lineterm=""))


def _lines(obj: JsonObject | None) -> list[str]:
    return [] if obj is None else write_yaml(ordered(obj)).splitlines()


def _coloured(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    return f"{colour}{line}{_RESET}" if colour else line
