"""The form of a package's state in a recording: the fields that a step changed, or all fields.

A form is a JSON object. Each key names a changed part of the state, and the value of the key has the changed fields of that
part by their names. An object to which the state machine only refers is written as a mark
(:mod:`~wharfinger.runtime.recording.marks`), so the form contains no settings, values or definitions. `package_changes` makes
the form from the states before and after a step, and `package_of` reads a form that has all fields.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum, auto
from itertools import compress
from operator import attrgetter, is_not
from typing import Final, NamedTuple, Protocol, TypeAlias, cast

import msgspec

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.package.state import (
    Applied,
    Configuration,
    Crds,
    DesiredPackage,
    Files,
    HookHistory,
    HookState,
    Node,
    Package,
    Removal,
    Vote,
)
from wharfinger.runtime.recording.canonical import CanonicalError, Codec, Text
from wharfinger.runtime.recording.status_form import status_after, status_changes

Mark: TypeAlias = Callable[[object, Text], JsonValue]
"""A function that returns the mark of an object: the form that a recording has instead of the object (see `marks`)."""


class Kind(Enum):
    """The way in which a field is written."""

    PLAIN = auto()
    """A number, a boolean, a name, or a tuple of names, written as it is."""
    TIME = auto()
    MARK = auto()
    """An object that is recorded as a mark, without its content. Fields of this kind are compared by identity."""
    HELD = auto()
    """A tuple that contains objects that are recorded as marks. Fields of this kind are compared by identity."""
    VALUE = auto()
    """Any other value, such as a record or a tuple of texts. The codec writes it."""
    FAILING = auto()
    HISTORY = auto()


_KINDS: Final[Mapping[type[msgspec.Struct], Mapping[str, Kind]]] = {
    DesiredPackage: {
        "source": Kind.MARK,
        "settings": Kind.MARK,
        "directives": Kind.MARK,
        "begun": Kind.TIME,
        "attempt": Kind.VALUE,
    },
    Files: {
        **dict.fromkeys(("manifest", "tree", "definition", "hooks"), Kind.MARK),
        **dict.fromkeys(("chart_use", "mentions_webhooks"), Kind.HELD),
    },
    Node: {"joined": Kind.MARK, "refused": Kind.VALUE, "disabling": Kind.VALUE, "missed_disable": Kind.VALUE},
    Vote: {"saw": Kind.VALUE, "voting": Kind.MARK, "kept": Kind.VALUE, "cast": Kind.VALUE},
    Configuration: dict.fromkeys(("newest", "configured", "configured_by", "settings", "values"), Kind.MARK),
    Applied: {"objects": Kind.MARK, **dict.fromkeys(("brought", "unmatched", "drift", "fought"), Kind.VALUE)},
    HookState: {
        "started": Kind.MARK,
        "scope": Kind.MARK,
        "startup_done": Kind.VALUE,
        "failing": Kind.FAILING,
        "history": Kind.HISTORY,
    },
    Crds: {"established": Kind.VALUE, "scope": Kind.MARK},
    Removal: {"deletion": Kind.VALUE},
}
"""For each class, the fields whose kind is not PLAIN, with their kinds."""


class _Make(Protocol):
    def __call__(self, **values: object) -> Package: ...


class _Part(NamedTuple):
    """A part of a package's state: its name, its class, a function that returns its fields, and their names and kinds."""

    name: str
    record: type[msgspec.Struct]
    get: Callable[[object], tuple[object, ...]]
    fields: tuple[tuple[str, Kind], ...]


def _part(name: str, record: type[msgspec.Struct]) -> _Part:
    names, kinds = record.__struct_fields__, _KINDS[record]
    get = cast("Callable[[object], tuple[object, ...]]", attrgetter(*names))
    return _Part(name, record, get, tuple((each, kinds.get(each, Kind.PLAIN)) for each in names))


_PARTS: Final = tuple(
    _part(name, record)
    for name, record in (
        ("desired", DesiredPackage), ("files", Files), ("node", Node), ("vote", Vote), ("configuration", Configuration),
        ("applied", Applied), ("hooks", HookState), ("crds", Crds), ("removal", Removal),
    )
)  # fmt: skip
_RECORDS: Final = cast("Callable[[Package], tuple[object, ...]]", attrgetter(*(part.name for part in _PARTS)))
_MARKED: Final = cast(
    "Callable[[Package], tuple[object, ...]]",
    attrgetter(*(f"{part.name}.{name}" for part in _PARTS for name, kind in part.fields if kind is Kind.MARK)),
)


_HELD: Final = cast(
    "Callable[[Package], tuple[tuple[object, ...] | None, ...]]",
    attrgetter(*(f"{part.name}.{name}" for part in _PARTS for name, kind in part.fields if kind is Kind.HELD)),
)


def package_changes(codec: Codec, before: Package | None, after: Package, text: Text, mark: Mark) -> JsonValue:
    """Return the parts of a state that changed, in recorded form; all parts if there was no earlier state."""
    changed: JsonObject = {}
    if before is after:
        return changed
    if before is None or before.status is not after.status:
        changed["status"] = status_changes(None if before is None else before.status, after.status, text)
    if before is None or (before.id is not after.id and before.id != after.id):
        changed["id"] = codec.encode(after.id, text)
    if before is None or before.warnings is not after.warnings:
        changed["warnings"] = [
            [subject, [text(each) for each in some]] for subject, some in sorted(after.warnings.items())
        ]
    if before is None:
        for part, new in zip(_PARTS, _RECORDS(after), strict=True):
            changed[part.name] = _whole(codec, part, new, text, mark)
        return changed
    olds, news = _RECORDS(before), _RECORDS(after)
    for part, old, new in compress(zip(_PARTS, olds, news, strict=True), map(is_not, olds, news)):
        if form := _part_changes(codec, part, old, new, text, mark):
            changed[part.name] = form
    return changed


def marked_objects(package: Package) -> tuple[object, ...]:
    """Return the objects that the recorded form of a package contains only as marks, also those in tuples."""
    return (*_MARKED(package), *(each for held in _HELD(package) for each in held or ()))


def package_of(codec: Codec, form: JsonValue) -> Package:
    """Return the state of a package from a form that has all parts. Raises CanonicalError."""
    if not isinstance(form, dict):
        raise CanonicalError("expected the state of a package, found something else")
    values: dict[str, object] = {}
    for part in _PARTS:
        fields = form.get(part.name)
        if not isinstance(fields, dict):
            raise CanonicalError(f"expected the {part.name} of a package, found none")
        try:
            found = {name: _read(codec, kind, fields[name]) for name, kind in part.fields}
            values[part.name] = part.record(**found)
        except (TypeError, ValueError, KeyError) as error:
            raise CanonicalError(
                f"{part.name}: expected the fields that this version of Wharfinger writes, found others: {error}"
            ) from error
    warnings = {
        str(subject): tuple(map(str, some)) for subject, some in cast("list[tuple[str, list[str]]]", form["warnings"])
    }
    make = cast("_Make", Package)
    return make(id=codec.decode(form["id"]), status=status_after(None, form["status"]), warnings=warnings, **values)


def _whole(codec: Codec, part: _Part, new: object, text: Text, mark: Mark) -> JsonObject:
    values = zip(part.fields, part.get(new), strict=True)
    return {name: _form(codec, kind, None, now, text, mark) for (name, kind), now in values}


def _part_changes(codec: Codec, part: _Part, old: object, new: object, text: Text, mark: Mark) -> JsonObject:
    changed: JsonObject = {}
    olds, news = part.get(old), part.get(new)
    for (name, kind), was, now in compress(zip(part.fields, olds, news, strict=True), map(is_not, olds, news)):
        if kind is Kind.MARK or kind is Kind.HELD or was != now:
            changed[name] = _form(codec, kind, was, now, text, mark)
    return changed


def _form(codec: Codec, kind: Kind, was: object, now: object, text: Text, mark: Mark) -> JsonValue:
    if kind is Kind.PLAIN or kind is Kind.TIME:
        return cast("JsonValue", now)
    if kind is Kind.MARK:
        return None if now is None else mark(now, text)
    if kind is Kind.VALUE or kind is Kind.HELD:
        return codec.encode(now, text)
    if kind is Kind.FAILING:
        failing = cast("Mapping[tuple[str, str], str]", now)
        return [[hook, lane, text(error)] for (hook, lane), error in sorted(failing.items())]
    earlier = cast("Mapping[str, HookHistory]", was or {})
    history = cast("Mapping[str, HookHistory]", now)
    return {
        hook: cast("JsonValue", [one.runs, one.last_run, text(one.last_error)])
        for hook, one in history.items()
        if earlier.get(hook) is not one
    }


def _read(codec: Codec, kind: Kind, form: JsonValue) -> object:
    if kind is Kind.PLAIN:
        return form
    if kind is Kind.TIME:
        return None if form is None else datetime.fromisoformat(str(form))
    if kind is Kind.FAILING:
        return {(hook, lane): error for hook, lane, error in cast("list[list[str]]", form)}
    if kind is Kind.HISTORY:
        runs = cast("dict[str, tuple[int, str | None, str]]", form)
        return {
            hook: HookHistory(number, None if at is None else datetime.fromisoformat(at), error)
            for hook, (number, at, error) in runs.items()
        }
    return codec.decode(form)
