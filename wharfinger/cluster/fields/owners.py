"""Who owns which fields of a live object, as its ``metadata.managedFields`` say, seen by one manager that applies.

Three kinds of entries matter to it: the one it applied (:attr:`FieldOwners.own`), what was written under its name in any other
way (a package's hooks write so), and everybody else's. Entries that cannot be read own nothing; where it is our own that cannot
be read, nothing can be said of the object at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.field_sets import EMPTY, FieldPath, FieldSet

APPLY: Final = "Apply"


@dataclass(frozen=True, slots=True)
class Writer:
    """A manager, and the subresource it wrote through ("" for the object itself)."""

    manager: str
    subresource: str = ""


NOBODY: Final = Writer("")
"""Who removed a field: nothing in an object tells it."""


@dataclass(frozen=True, slots=True)
class _Entry:
    writer: Writer
    time: str
    fields: FieldSet


@dataclass(frozen=True, slots=True)
class FieldOwners:
    """The owners of one object's fields. Made by :func:`read_owners`."""

    own: FieldSet
    """What the manager applied, and still owns."""
    own_updates: FieldSet
    """What was written under the manager's name, but not applied."""
    others: tuple[_Entry, ...] = field(default=())
    """Everybody else, the latest first."""

    def writer_of(self, path: FieldPath) -> Writer:
        """Who else has this field now, or something in it; NOBODY where nobody has."""
        for entry in self.others:
            if path in entry.fields or below(entry.fields, path):
                return entry.writer
        return NOBODY

    def are_others_whole(self, path: FieldPath) -> bool:
        """Whether somebody else has this field, and nobody else anything in it: as a whole."""
        has = any(path in entry.fields for entry in self.others)
        return has and not any(below(entry.fields, path) for entry in self.others)

    def sets_of_others(self) -> Iterator[tuple[Writer, FieldSet]]:
        """What each of the others has."""
        for entry in self.others:
            yield entry.writer, entry.fields


def own_entry(live: JsonObject, manager: str) -> JsonObject | None:
    """The entry of what the manager applied to the object, as it is written there."""
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


def read_owners(live: JsonObject, manager: str) -> FieldOwners | None:
    """The owners of the fields of a live object, or None where the manager's own entry cannot be read."""
    own, own_updates = EMPTY, EMPTY
    others: list[_Entry] = []
    entries = find(live, "metadata", "managedFields")
    for entry in entries if isinstance(entries, list) else ():
        said = entry if isinstance(entry, dict) else {}
        ours = find(said, "manager") == manager
        try:
            fields = FieldSet.from_fields_v1(find(said, "fieldsV1"))
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
    """The text at a path of a foreign object, "" where there is none; nothing that a server sends may raise here."""
    value = find(live, *path)
    return value if isinstance(value, str) else ""


def below(fields: FieldSet, path: FieldPath) -> FieldSet:
    """The paths of the set below one path, without it."""
    for element in path:
        fields = fields.below(element)
    return fields
