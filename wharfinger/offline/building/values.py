"""The values of a HelmRelease: ``valuesFrom`` in order, then ``spec.values``; later ones win.

A reference with a ``targetPath`` sets one value at a path, in the notation of ``helm --set``: ``a.b[0].c``, with ``\\.`` for a
dot in a key. The text of the value becomes a number, a boolean or null if it looks like one, unless it is in quotes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import CONFIG_MAP, SECRET
from wharfinger.runtime.fixpoint.model import Id

DEFAULT_KEY: Final = "values.yaml"
MAX_INDEX: Final = 65_536
"""The largest index of a list in a path; Helm has the same limit."""
_STEP: Final = re.compile(r"((?:\\.|[^.\[\]\\])+)|\[(\d+)\]")
_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d*)\Z")


class ValuesError(FormatError):
    """The values of a HelmRelease cannot be put together."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One entry of a HelmRelease's ``valuesFrom``."""

    source: Id
    key: str
    target: str
    optional: bool


def references_of(obj: JsonObject, namespace: str) -> tuple[Reference, ...]:
    """Return the entries of ``spec.valuesFrom``. Raises ValuesError."""
    found: list[Reference] = []
    for number, entry in enumerate(find_list(obj, "spec", "valuesFrom")):
        kind, name = find_str(entry, "kind"), find_str(entry, "name")
        if kind not in {CONFIG_MAP, SECRET} or not name:
            raise ValuesError(f"spec.valuesFrom[{number}]: expected the kind ConfigMap or Secret, and a name")
        key = find_str(entry, "valuesKey", default=DEFAULT_KEY) or DEFAULT_KEY
        optional = find(entry, "optional") is True
        found.append(Reference(Id(kind, namespace, name), key, find_str(entry, "targetPath"), optional))
    return tuple(found)


def release_values(
    obj: JsonObject, references: tuple[Reference, ...], data: Callable[[Id], Mapping[str, str] | None]
) -> JsonObject:
    """Return the values of a HelmRelease; ``data`` returns the texts of a ConfigMap or Secret, None if it does not exist.

    Raises FormatError.
    """
    values: JsonObject = {}
    for reference in references:
        found = data(reference.source)
        text = None if found is None else found.get(reference.key)
        if text is None:
            if reference.optional:
                continue
            what = "does not exist" if found is None else f"has no key {reference.key!r}"
            raise ValuesError(f"spec.valuesFrom: {shown(reference.source)} {what}")
        if reference.target:
            values = with_value(values, reference.target, text)
        else:
            what = f"{shown(reference.source)}, {reference.key}"
            values = overlaid(values, as_object(read_yaml(text, what=what) or {}, what))
    return overlaid(values, find_object(obj, "spec", "values"))


def with_value(values: JsonObject, path: str, text: str) -> JsonObject:
    """Return values with one more value at a path. Raises ValuesError."""
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise ValuesError(f"targetPath {path!r} cannot be read from character {position + 1} on")
        steps.append(re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else int(match[2]))
        position = match.end()
        if path[position : position + 1] == ".":
            position += 1
    if not steps or isinstance(steps[0], int):
        raise ValuesError(f"targetPath {path!r} names no value")
    return as_object(_placed(values, tuple(steps), _typed(text), path), path)


def _placed(value: JsonValue, steps: tuple[str | int, ...], leaf: JsonValue, path: str) -> JsonValue:
    if not steps:
        return leaf
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        if step > MAX_INDEX:
            raise ValuesError(f"targetPath {path!r}: the index {step} is over the limit of {MAX_INDEX}")
        items = list(value) if isinstance(value, list) else []
        items += [None] * (step + 1 - len(items))
        items[step] = _placed(items[step], rest, leaf, path)
        return items
    members = dict(value) if isinstance(value, dict) else {}
    members[step] = _placed(members.get(step), rest, leaf, path)
    return members


def _typed(text: str) -> JsonValue:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    words: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    return int(text) if _INTEGER.match(text) else text
