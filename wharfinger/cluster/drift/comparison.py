"""Which fields of an object are not as we applied them, and who changed them: judged by ownership, never by comparing documents.

Comparing what a chart wrote with what is there gives false alarms without end: the server fills in defaults, normalises
quantities, drops what is null, and others rightly own fields beside ours. But the server keeps book (``metadata.managedFields``):
a field of ours that somebody changes or removes leaves our entry in it that moment. So what drifted is what our entry lacks:

* With a baseline (:class:`~wharfinger.cluster.objects.applied_objects.Applied`): the fields that were ours when we applied,
  and are not any more; and fields that still are, with another value than was answered then (somebody wrote under our name, or
  a webhook changed what somebody else wrote).
* Without one, after a restart: what the object says that we want, and our entry does not cover. The sets say of themselves which
  lists are keyed, so no schema is needed. What is empty or null says nothing, nor what the server alone decides.

Two things are no drift: fields that were taken under our own name by anything but an apply, since a package's hooks write so,
and fields that a rule leaves to others (:mod:`~wharfinger.cluster.objects.drift_policy`). The writer of a removal is nowhere
told: it is "".
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.drift.field_removal import without_fields
from wharfinger.cluster.drift.ignored import is_ignored
from wharfinger.cluster.fields.coverage import says_something, uncovered
from wharfinger.cluster.fields.items import Absent, pointer_text, segments_at, value_at
from wharfinger.cluster.fields.owners import NOBODY, FieldOwners, Writer, read_owners, text_at
from wharfinger.cluster.objects.applied_objects import STRING_DATA, Applied
from wharfinger.cluster.objects.desired import Identity
from wharfinger.cluster.objects.drift_policy import IgnoreRule, segments_of
from wharfinger.formats.json.value import JsonObject, find, find_object
from wharfinger.kube.field_sets import EMPTY, FieldPath
from wharfinger.kube.resource import kind_of, name_of, namespace_of, split_api_version

SHOWN: Final = 5
"""Fields named when a drift is printed."""


@dataclass(frozen=True, slots=True)
class DriftedField:
    """A JSON pointer to what changed, and the manager that has it now: "" where it was removed, or nobody knows.

    An index in the pointer is that of the item in the object we want, as in its chart.
    """

    pointer: str
    by: str

    def __str__(self) -> str:
        """``/spec/replicas by kubectl``."""
        return f"{self.pointer or '/'} by {self.by}" if self.by else f"{self.pointer or '/'}"


@dataclass(frozen=True, slots=True)
class Drift:
    """One object that is not as it was applied: it is gone (``missing``), or fields of it are not ours any more."""

    identity: Identity
    missing: bool
    fields: tuple[DriftedField, ...] = ()

    @property
    def writers(self) -> tuple[str, ...]:
        """The managers that are named, sorted."""
        return tuple(sorted({field.by for field in self.fields} - {""}))

    def __str__(self) -> str:
        """``Deployment.apps prod/web: /spec/replicas by kubectl``; ``ConfigMap prod/web: gone``."""
        if self.missing:
            return f"{self.identity}: gone"
        more = f", and {len(self.fields) - SHOWN} more" if len(self.fields) > SHOWN else ""
        return f"{self.identity}: {', '.join(map(str, self.fields[:SHOWN]))}{more}"


def find_drift(
    desired: JsonObject, applied: Applied | None, live: JsonObject, manager: str, ignore: Sequence[IgnoreRule]
) -> Drift | None:
    """How a live object differs from what was applied; None where it does not, or it is on its way out.

    ``desired`` is what is wanted, with its namespace; ``applied`` what was answered, if it is known; ``ignore`` includes what is
    built in. Of another object under the same name (its uid differs) the baseline says nothing.
    """
    owners = read_owners(live, manager)
    if owners is None or find(live, "metadata", "deletionTimestamp") is not None:
        return None
    if applied is not None and not applied.partial and applied.uid == text_at(live, "metadata", "uid"):
        paths = _lost(applied, owners, desired, live)
    else:
        paths = list(uncovered(desired, live, owners))
    paths += _changed_secrets(desired, live, owners)
    fields: list[DriftedField] = []
    for path, writer in _topmost({path: _writer(path, owners, manager) for path in paths}):
        segments = segments_at(path, desired, live)
        if not is_ignored(segments, writer, desired, ignore):
            fields.append(DriftedField(pointer_text(segments), writer.manager))
    return Drift(identity_of_object(desired), missing=False, fields=tuple(fields)) if fields else None


def without_ignored(
    desired: JsonObject, live: JsonObject, manager: str, ignore: Sequence[IgnoreRule], *, own_updates: bool = False
) -> JsonObject:
    """The object to apply: without ignored fields that somebody else has in the live one, as far as he has them.

    So an apply neither takes them nor gives them back. With ``own_updates`` what was written under our own name by anything
    but an apply (a package's hooks) is left out as well, as it is where drift is corrected.
    """
    owners = read_owners(live, manager)
    if owners is None:
        return desired
    for rule in ignore:
        if not rule.takes_object(desired):
            continue
        others = EMPTY
        for writer, fields in owners.sets_of_others():
            if rule.takes_writer(writer.manager, writer.subresource):
                others = others.union(fields)
        for path in rule.paths if others else ():
            desired = without_fields(desired, segments_of(path), others)
    if own_updates and (taken := owners.own_updates.difference(owners.own)):
        desired = without_fields(desired, (), taken)
    return desired


def identity_of_object(obj: JsonObject) -> Identity:
    """The identity of an object that has its namespace."""
    api_version, kind = kind_of(obj)
    group, _ = split_api_version(api_version)
    return Identity(f"{kind}.{group}" if group else kind, namespace_of(obj), name_of(obj))


# -- with a baseline


def _lost(applied: Applied, owners: FieldOwners, desired: JsonObject, live: JsonObject) -> list[FieldPath]:
    """What was ours and is not, and what is ours and has another value."""
    lost = applied.owned.difference(owners.own).difference(owners.own_updates)
    paths = [path for path in lost.paths() if path[0] != STRING_DATA and _matters(path, desired, owners)]
    if desired.get("apiVersion") != live.get("apiVersion"):
        return paths  # values are of other forms in another version
    kept = owners.own.difference(owners.own_updates)
    changed = applied.changed_values(live)
    return paths + [path for path in changed if path in kept and says_something(value_at(path, desired))]


def _matters(path: FieldPath, desired: JsonObject, owners: FieldOwners) -> bool:
    """Whether the loss of a field is one. Of an empty value it is only where somebody put another in its place as a whole.

    A chart's ``annotations: {}`` is nothing to be defended against who annotates; its ``tolerations: []`` is. Its null is not.
    """
    value = value_at(path, desired)
    return isinstance(value, Absent) or says_something(value) or (value is not None and owners.are_others_whole(path))


# -- both


def _changed_secrets(desired: JsonObject, live: JsonObject, owners: FieldOwners) -> Iterator[FieldPath]:
    """``data`` of a Secret that is not what ``stringData`` said: it is stored there, and owned by nobody."""
    if kind_of(desired) != ("v1", "Secret"):
        return
    for name, text in find_object(desired, "stringData").items():
        wanted = base64.b64encode(text.encode() if isinstance(text, str) else b"").decode()
        path = ("f:data", f"f:{name}")
        if text_at(live, "data", name) != wanted and path not in owners.own_updates:
            yield path


def _writer(path: FieldPath, owners: FieldOwners, manager: str) -> Writer:
    """Who has the field: somebody else, or ourselves, as whoever wrote under our name did not lose it."""
    writer = owners.writer_of(path)
    return Writer(manager) if writer is NOBODY and path in owners.own else writer


def _topmost(writers: Mapping[FieldPath, Writer]) -> Iterator[tuple[FieldPath, Writer]]:
    """In order of paths, without what is lost below an item or field that is told: unless it is another writer's."""
    for path, writer in sorted(writers.items(), key=lambda item: item[0]):
        above = [writers[path[:length]] for length in range(1, len(path)) if path[:length] in writers]
        if not above or writer not in (*above, NOBODY):
            yield path, writer
