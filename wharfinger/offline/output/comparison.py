"""The comparison of two builds, object by object. Pure.

The two builds are the *sides*. A producer that failed on one side made no objects there. Its objects, and everything that those
objects would make, would look added or deleted. So they are left out, and the comparison names the producers instead.

Values of Secrets are hidden; the comparison only shows whether they differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, checksum
from wharfinger.offline.orchestrator.result import Manifest, Result
from wharfinger.offline.output.wiped_secrets import PUBLIC, without_copies
from wharfinger.offline.store.kinds import SECRET
from wharfinger.runtime.fixpoint.model import Id

HIDDEN: Final = "(hidden)"
HIDDEN_BEFORE: Final = "(hidden, the value before)"
HIDDEN_AFTER: Final = "(hidden, the value after)"


class Verb(StrEnum):
    """The kind of change of one object."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object that differs; the side on which it does not exist is None. Values of Secrets are hidden."""

    id: Id
    before: JsonObject | None
    after: JsonObject | None

    @property
    def verb(self) -> Verb:
        """The kind of the change."""
        if self.before is None:
            return Verb.ADDED
        return Verb.DELETED if self.after is None else Verb.CHANGED


@dataclass(frozen=True, slots=True)
class Comparison:
    """All objects that differ, sorted by id.

    ``incomparable`` are producers that failed on one side, or on both. ``unknown`` are producers that exist on one side only
    because an incomparable producer makes them, directly or through others. ``unsearched`` are releases with the same inputs on
    both sides. Their charts were not fetched, so nodes that they may make are not compared.
    """

    changes: tuple[ObjectChange, ...]
    incomparable: tuple[Id, ...]
    unknown: tuple[Id, ...] = ()
    unsearched: tuple[Id, ...] = ()

    def count(self, verb: Verb) -> int:
        """Return the number of changes of one kind."""
        return sum(change.verb is verb for change in self.changes)


def compared(before: Result, after: Result) -> Comparison:
    """Compare two builds of a tree."""
    failed = {*before.failed, *after.failed}
    without = failed | _only_made_by_failed(failed, before, after)
    old, new = _objects(before, without), _objects(after, without)
    # The objects of a producer that failed on one side are unknown there, so they are neither added nor deleted.
    hidden = _made_by(before, without) | _made_by(after, without)
    changes: list[ObjectChange] = []
    for who in sorted({*old, *new} - hidden):
        one, other = old.get(who), new.get(who)
        if one is not None and other is not None and checksum(one) == checksum(other):
            continue
        changes.append(ObjectChange(who, *_with_hidden_values(who, one, other)))
    return Comparison(tuple(changes), tuple(sorted(failed)), tuple(sorted(without - failed)))


def _only_made_by_failed(failed: set[Id], before: Result, after: Result) -> set[Id]:
    """Return the producers that exist on one side only and are made there, directly or not, by producers that failed."""
    found: set[Id] = set()
    for one, other in ((before, after), (after, before)):
        pending = list(failed)
        while pending:
            for manifest in one.manifests.get(pending.pop(), ()):
                if manifest.id in one.manifests and manifest.id not in other.manifests and manifest.id not in found:
                    found.add(manifest.id)
                    pending.append(manifest.id)
    return found


def images_of(obj: JsonObject | None) -> frozenset[str]:
    """Return the images of all containers in an object, at any depth."""
    return frozenset(_images(obj))


def changed_images(changes: tuple[ObjectChange, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the images that only the old objects have, and the images that only the new objects have, both sorted."""
    old = {image for change in changes for image in images_of(change.before)}
    new = {image for change in changes for image in images_of(change.after)}
    return tuple(sorted(old - new)), tuple(sorted(new - old))


def _objects(result: Result, failed: set[Id]) -> dict[Id, JsonObject]:
    found: dict[Id, JsonObject] = {}
    for producer in sorted(result.manifests):
        if producer not in failed:
            for manifest in result.manifests[producer]:
                found.setdefault(manifest.id, manifest.object)
    return found


def _made_by(result: Result, producers: set[Id]) -> set[Id]:
    manifests: Mapping[Id, tuple[Manifest, ...]] = result.manifests
    return {manifest.id for producer in producers for manifest in manifests.get(producer, ())}


def _with_hidden_values(
    who: Id, before: JsonObject | None, after: JsonObject | None
) -> tuple[JsonObject | None, JsonObject | None]:
    """Return both sides of an object; if it is a Secret, fixed texts replace its values."""
    if who.kind != SECRET:
        return before, after
    return _masked(before, after, HIDDEN_BEFORE), _masked(after, before, HIDDEN_AFTER)


def _masked(obj: JsonObject | None, other: JsonObject | None, word: str) -> JsonObject | None:
    if obj is None:
        return None
    return {
        key: value if key in PUBLIC else _hidden_field(value, value if other is None else other.get(key), word)
        for key, value in without_copies(obj).items()
    }


def _hidden_field(value: JsonValue, other: JsonValue, word: str) -> JsonValue:
    if not isinstance(value, dict):
        return HIDDEN if value == other else word
    others = other if isinstance(other, dict) else {}
    return {name: HIDDEN if others.get(name) == each else word for name, each in value.items()}


def _images(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"containers", "initContainers", "ephemeralContainers"} and isinstance(inner, list):
                for each in inner:
                    image = each.get("image") if isinstance(each, dict) else None
                    if isinstance(image, str):
                        yield image
            else:
                yield from _images(inner)
    elif isinstance(value, list):
        for each in value:
            yield from _images(each)
