"""Fields of an object that differ from what we applied, and their writers, judged by ownership.

A comparison of a chart's object with the live object would give endless false alarms: the server fills in defaults, normalizes
quantities and drops nulls, and other managers rightly own fields beside ours. So the two documents are never compared.

Instead, drift is found by ownership, which the server records in ``metadata.managedFields``. When another manager changes or
removes a field of ours, the server removes the field from our entry. So these fields have drifted:

* With a baseline (:class:`~wharfinger.cluster.objects.applied_objects.Applied`): the fields that were ours when we applied but
  are not ours any more; and fields that are still ours, but have another value than in the server's answer (another program wrote
  under our name, or a webhook changed what another manager wrote).
* Without a baseline, after a restart: the wanted fields that our entry does not cover. The field sets themselves show which lists
  are keyed, so no schema is needed. Nulls do not count, nor do fields that only the server decides, nor empty values
  (unless another manager replaced an empty value as a whole).

Two kinds of fields do not count as drift: fields that were written under our own name by other means than an apply, as a
package's hooks do, and fields that a rule leaves to other managers (:mod:`~wharfinger.cluster.objects.drift_policy`). The server
does not record which manager removed a field, so the writer of a removal is "".
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.drift.field_removal import without_fields
from wharfinger.cluster.drift.ignored import is_ignored
from wharfinger.cluster.fields.coverage import has_content, uncovered
from wharfinger.cluster.fields.items import Absent, segments_at, value_at
from wharfinger.cluster.fields.owners import NOBODY, FieldOwners, Writer, own_entry, read_owners, text_at
from wharfinger.cluster.objects.applied_objects import STRING_DATA, Applied
from wharfinger.cluster.objects.desired import DIGEST_ANNOTATION, DesiredObject, Identity
from wharfinger.cluster.objects.drift_policy import IgnoreRule
from wharfinger.formats.json.pointers import pointer_of, pointer_steps
from wharfinger.formats.json.value import JsonObject, find, find_object
from wharfinger.formats.listing import listed
from wharfinger.kube.field_sets import EMPTY, FieldPath
from wharfinger.kube.resource import kind_of, name_of, namespace_of, split_api_version

SHOWN: Final = 5
"""The largest number of fields that are named when a drift is printed."""


@dataclass(frozen=True, slots=True)
class DriftedField:
    """A JSON pointer to a changed field, and the manager that has it now ("" if it was removed, or no manager is known).

    An index in the pointer is that of the item in the desired object. If only the live object has the item, it is the index
    there.
    """

    pointer: str
    by: str

    def __str__(self) -> str:
        """Return the field as text: ``/spec/replicas by kubectl``."""
        return f"{self.pointer or '/'} by {self.by}" if self.by else f"{self.pointer or '/'}"


@dataclass(frozen=True, slots=True)
class Drift:
    """An object that differs from what was applied: it is missing, or some of its fields are lost or have another value."""

    identity: Identity
    missing: bool
    fields: tuple[DriftedField, ...] = ()

    @property
    def writers(self) -> tuple[str, ...]:
        """Return the managers that are known to have changed the fields, sorted."""
        return tuple(sorted({field.by for field in self.fields} - {""}))

    def __str__(self) -> str:
        """Return the drift as text: ``Deployment.apps prod/web: /spec/replicas by kubectl``; ``ConfigMap prod/web: gone``."""
        if self.missing:
            return f"{self.identity}: gone"
        return f"{self.identity}: {listed(self.fields, SHOWN)}"


def is_in_doubt(row: DesiredObject, live: JsonObject, manager: str) -> bool:
    """Return whether we applied the live object for another row than ``row``. In that case, the fields that we own may have
    other values than in ``row``, although nobody has changed them.

    The row is recognized by the annotation DIGEST_ANNOTATION. The result is False if the object lacks the annotation. It is
    also False if another manager wrote the annotation; otherwise that manager could hide drift.
    """
    if text_at(live, "metadata", "annotations", DIGEST_ANNOTATION) in {"", row.digest}:
        return False
    path = ("fieldsV1", "f:metadata", "f:annotations", f"f:{DIGEST_ANNOTATION}")
    return find(own_entry(live, manager), *path) is not None


def find_drift(
    desired: JsonObject, applied: Applied | None, live: JsonObject, manager: str, ignore: Sequence[IgnoreRule]
) -> Drift | None:
    """Return how a live object differs from what was applied; None if it does not differ, or if it is being deleted.

    ``desired`` is the wanted object, with its namespace. ``applied`` is the baseline, which was taken from the answer to the
    apply; None if it is not known. The baseline is not used if the live object is another one under the same name (its uid
    differs). ``ignore`` includes the built-in rules.
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
            fields.append(DriftedField(pointer_of(segments), writer.manager))
    return Drift(identity_of_object(desired), missing=False, fields=tuple(fields)) if fields else None


def without_ignored(
    desired: JsonObject, live: JsonObject, manager: str, ignore: Sequence[IgnoreRule], *, own_updates: bool = False
) -> JsonObject:
    """Return the object to apply: ``desired`` without the ignored fields that another manager owns in the live object.

    The apply then neither overwrites these fields nor gives them up. With ``own_updates``, fields that were written under
    our own name by anything but an apply (a package's hooks) are left out as well; corrections of drift do that.
    """
    owners = read_owners(live, manager)
    if owners is None:
        return desired
    for rule in ignore:
        if not rule.matches_object(desired):
            continue
        others = EMPTY
        for writer, fields in owners.sets_of_others():
            if rule.matches_writer(writer.manager, writer.subresource):
                others = others.union(fields)
        for path in rule.paths if others else ():
            desired = without_fields(desired, pointer_steps(path), others)
    if own_updates and (taken := owners.own_updates.difference(owners.own)):
        desired = without_fields(desired, (), taken)
    return desired


def identity_of_object(obj: JsonObject) -> Identity:
    """Return the identity of an object. If its kind is namespaced, ``metadata.namespace`` must be set."""
    api_version, kind = kind_of(obj)
    group, _ = split_api_version(api_version)
    return Identity(f"{kind}.{group}" if group else kind, namespace_of(obj), name_of(obj))


# -- with a baseline


def _lost(applied: Applied, owners: FieldOwners, desired: JsonObject, live: JsonObject) -> list[FieldPath]:
    """Return the fields that we owned and no longer own, and the fields that we own but that no longer have the value that we
    applied.
    """
    lost = applied.owned.difference(owners.own).difference(owners.own_updates)
    paths = [path for path in lost.paths() if path[0] != STRING_DATA and _matters(path, desired, owners)]
    if desired.get("apiVersion") != live.get("apiVersion"):
        return paths  # values have another form in another version
    kept = owners.own.difference(owners.own_updates)
    changed = applied.changed_values(live)
    return paths + [path for path in changed if path in kept and has_content(value_at(path, desired))]


def _matters(path: FieldPath, desired: JsonObject, owners: FieldOwners) -> bool:
    """Return whether the loss of a field matters.

    The loss of an empty value matters only if another manager replaced it as a whole. So additional annotations beside a chart's
    ``annotations: {}`` are not drift, but additional tolerations beside its ``tolerations: []`` are. The loss of a null never
    matters.
    """
    value = value_at(path, desired)
    return isinstance(value, Absent) or has_content(value) or (value is not None and owners.has_other_whole_owner(path))


# -- both


def _changed_secrets(desired: JsonObject, live: JsonObject, owners: FieldOwners) -> Iterator[FieldPath]:
    """Yield the ``data`` fields of a Secret that differ from the wanted ``stringData``. The server stores ``stringData`` in
    ``data``, and no manager owns the result.
    """
    if kind_of(desired) != ("v1", "Secret"):
        return
    for name, text in find_object(desired, "stringData").items():
        wanted = base64.b64encode(text.encode() if isinstance(text, str) else b"").decode()
        path = ("f:data", f"f:{name}")
        if text_at(live, "data", name) != wanted and path not in owners.own_updates:
            yield path


def _writer(path: FieldPath, owners: FieldOwners, manager: str) -> Writer:
    """Return the manager that owns the field: another manager, or our own name if another program wrote the field under it."""
    writer = owners.writer_of(path)
    return Writer(manager) if writer is NOBODY and path in owners.own else writer


def _topmost(writers: Mapping[FieldPath, Writer]) -> Iterator[tuple[FieldPath, Writer]]:
    """Yield the lost fields with their writers, in the order of the paths. A field inside of another lost field or item is
    yielded only if its writer is known, and is not the writer of a lost field around it.
    """
    for path, writer in sorted(writers.items(), key=lambda item: item[0]):
        above = [writers[path[:length]] for length in range(1, len(path)) if path[:length] in writers]
        if not above or writer not in (*above, NOBODY):
            yield path, writer
