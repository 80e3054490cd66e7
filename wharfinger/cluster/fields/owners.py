"""The owners of a live object's fields, by its ``metadata.managedFields``, as seen by one manager that applies the object.

There are three kinds of entries: the fields that this manager applied (:attr:`FieldOwners.own`), the fields that were written
under its name by other means (by a package's hooks, for example), and the fields of all other managers. Unreadable entries of
other managers are skipped; if an entry of this manager is unreadable, nothing is known about the object.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.field_sets import EMPTY, FieldPath, FieldSet, read_fields_v1

APPLY: Final = "Apply"
STATUS: Final = "status"
"""The name of the subresource for the status. The fields that a writer owns through it are never fields that we apply."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A manager, and the subresource it wrote through ("" for the object itself)."""

    manager: str
    subresource: str = ""


NOBODY: Final = Writer("")
"""A placeholder for the writer of a removed field, because an object does not record which manager removed a field."""


@dataclass(frozen=True, slots=True)
class _Entry:
    writer: Writer
    time: str
    fields: FieldSet


@dataclass(frozen=True, slots=True)
class FieldOwners:
    """The owners of one object's fields. Made by :func:`read_owners`."""

    own: FieldSet
    """The fields that the manager applied, and still owns."""
    own_updates: FieldSet
    """The other fields that were written under the manager's name: with an update, or through a subresource."""
    others: tuple[_Entry, ...] = field(default=())
    """The entries of all other managers, the latest first."""

    def writer_of(self, path: FieldPath) -> Writer:
        """Return the other manager that owns this field now, else a manager that owns a field inside it; NOBODY if there is
        no such manager.
        """
        inside = NOBODY
        for entry in self.others:
            if path in entry.fields:
                return entry.writer
            if inside is NOBODY and below(entry.fields, path):
                inside = entry.writer
        return inside

    def has_other_whole_owner(self, path: FieldPath) -> bool:
        """Return whether another manager owns this field as a whole, and no other manager owns anything inside it."""
        has = any(path in entry.fields for entry in self.others)
        return has and not any(below(entry.fields, path) for entry in self.others)

    def sets_of_others(self) -> Iterator[tuple[Writer, FieldSet]]:
        """Yield the entries of all other managers, each as its writer and the fields that it owns."""
        for entry in self.others:
            yield entry.writer, entry.fields


def own_entry(live: JsonObject, manager: str) -> JsonObject | None:
    """Return the unparsed entry of ``metadata.managedFields`` about the manager's apply; None if the manager has not applied
    the object.
    """
    metadata = live.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if (
            isinstance(entry, dict)
            and entry.get("manager") == manager
            and entry.get("operation") == APPLY
            and not entry.get("subresource")
        ):
            return entry
    return None


def has_other_writers(live: JsonObject, manager: str) -> bool:
    """Return whether another manager has an entry in the object, apart from entries for the status. Called for every event."""
    metadata = live.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            return True
        if entry.get("manager") != manager and entry.get("subresource") != STATUS:
            return True
    return False


def read_owners(live: JsonObject, manager: str) -> FieldOwners | None:
    """Return the owners of the fields of a live object, or None if the manager's own entry cannot be read."""
    own, own_updates = EMPTY, EMPTY
    others: list[_Entry] = []
    entries = find(live, "metadata", "managedFields")
    for entry in entries if isinstance(entries, list) else ():
        said = entry if isinstance(entry, dict) else {}
        ours = find(said, "manager") == manager
        try:
            fields = read_fields_v1(find(said, "fieldsV1"))
            writer = Writer(find_str(said, "manager"), find_str(said, "subresource"))
            time, applied = find_str(said, "time"), find_str(said, "operation") == APPLY
        except FormatError:
            if ours:
                return None
            continue
        if not ours:
            others.append(_Entry(writer, time, fields))
        elif applied and not writer.subresource:
            own = fields
        else:
            own_updates = own_updates.union(fields)
    others.sort(key=lambda entry: (entry.time, entry.writer.manager), reverse=True)
    return FieldOwners(own, own_updates, tuple(others))


def text_at(live: JsonObject, *path: str) -> str:
    """Return the text at a path of an object; "" if the value is missing or not a text. Raises nothing, whatever was sent."""
    value = find(live, *path)
    return value if isinstance(value, str) else ""


def below(fields: FieldSet, path: FieldPath) -> FieldSet:
    """Return the fields of the set that lie below ``path``, as paths relative to ``path``."""
    for element in path:
        fields = fields.below(element)
    return fields
