"""Marks: the recorded form of objects to which a package's state refers, but which are not recorded themselves.

Such objects (a definition, settings and values, the monitors of hooks, the scope of an operation) are too large, secret, or
mutable. The state machine of a package only reads a few of their attributes, and compares the objects by identity. So a
recording has a number for each of these objects, and at the first mention of an object also the attributes that the state
machine reads (`_details`). When a recording is read, a `StandIn` takes the object's place: the same number always gives the
same stand-in, so comparisons by identity have the same results.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Never, cast

from wharfinger.cluster.objects.drift_policy import DriftMode
from wharfinger.formats.json.value import JsonValue
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.registry.registry import Manifest
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.recording.canonical import CanonicalError, Text
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.versions.rollback_note import RollbackNote

MARK: Final = "~"
"""The tag of a mark."""
MOST_OBJECTS: Final = 40
"""If a package has more marked objects than this, those to which the package's state no longer refers are forgotten."""


@dataclass(slots=True, eq=False)
class StandIn:
    """An object that replaces a marked object (an object that is recorded only as a mark) when a recording is read. It has the
    number, the kind, and the recorded attributes of the marked object. Stand-ins are compared by identity.
    """

    number: int
    kind: str = ""
    attributes: tuple[JsonValue, ...] = ()
    cancelled: bool = False
    """True for a scope that is cancelled; whether a scope is cancelled is recorded with each event that may depend on it."""

    def __getattr__(self, name: str) -> object:
        """Return a recorded attribute of the marked object. Raises AttributeError for an attribute that is not recorded."""
        names = _ATTRIBUTES.get(object.__getattribute__(self, "kind"), ())
        if name in names:
            found = object.__getattribute__(self, "attributes")[names.index(name)]
            return _READ[name](found) if name in _READ else found
        if name in _SELF:  # the path ``release_policy.drift.mode`` is recorded as an attribute of the directives
            return self
        raise AttributeError(f"{self.kind or 'an object'}: {name} is not recorded")


_ATTRIBUTES: Final = {
    "Definition": ("name", "version", "crds", "enabled_script"),
    "Settings": ("checksum",),
    "Directives": ("requested", "maintenance", "deletion", "mode", "asked", "rollback", "rolled_back"),
    "Manifest": ("digest",),
    "Scope": ("name",),
}
_SELF: Final = frozenset({"release_policy", "drift", "upgrade", "descriptor"})


def _note(form: JsonValue) -> RollbackNote | None:
    match form:
        case [int(revision), str(version), str(wanted), str(reason), str(message)]:
            return RollbackNote(revision, version, wanted, reason, message)
        case _:
            return None


_READ: Final[dict[str, Callable[[JsonValue], object]]] = {
    "deletion": lambda form: DeletionPolicy(str(form)),
    "mode": lambda form: DriftMode(str(form)),
    "rolled_back": _note,
}
"""The functions that decode recorded attributes, for attributes that are not texts, numbers or booleans."""


class Marks:
    """The numbers that represent the objects of one package in records. The objects are kept in memory until `forget` is
    called. Otherwise Python could give the id of a deleted object to a new object, which would then get the old object's
    number.
    """

    __slots__ = ("_mentioned", "_numbers", "_objects")

    def __init__(self) -> None:
        self._numbers = 0
        self._objects: dict[int, tuple[object, int]] = {}
        self._mentioned: set[int] = set()

    @property
    def has_many(self) -> bool:
        """Return whether there are so many objects that unused ones should be forgotten."""
        return len(self._objects) > MOST_OBJECTS

    def form(self, value: object, text: Text) -> JsonValue:
        """Return the mark that is recorded in place of an object. The mark has the object's attributes if the object is
        mentioned for the first time.
        """
        known = self._objects.get(id(value))
        if known is None:
            self._numbers += 1
            known = self._objects[id(value)] = (value, self._numbers)
        number = known[1]
        if number in self._mentioned:
            return [MARK, number]
        self._mentioned.add(number)
        return [MARK, number, *_details(value, text)]

    def begin(self) -> None:
        """Prepare the record of a whole state: the next mark of each object has the object's attributes again."""
        self._mentioned.clear()

    def forget(self, kept: tuple[object, ...]) -> None:
        """Forget all objects except for these."""
        found = ((id(each), self._objects.get(id(each))) for each in kept)
        self._objects = {key: known for key, known in found if known is not None}
        self._mentioned &= {number for _, number in self._objects.values()}


def form_of(value: object) -> JsonValue:
    """Return the mark of a StandIn (which takes the place of a marked object in a replay), without its attributes.

    Raises CanonicalError for any other object.
    """
    if isinstance(value, StandIn):
        return [MARK, value.number]
    raise CanonicalError(
        f"{type(value).__name__}: objects of this type cannot be recorded; a state machine must not hold one"
    )


def plain(form: JsonValue) -> JsonValue:
    """Return a copy of a recorded value in which each mark has only its number, without attributes."""
    match form:
        case ["~", int(number), *_]:
            return [MARK, number]
        case list():
            return [plain(each) for each in form]
        case dict():
            return {name: plain(each) for name, each in form.items()}
        case _:
            return form


def stand_in(rest: list[JsonValue], known: dict[int, StandIn] | None) -> StandIn:
    """Return the object that takes the place of a marked object when a recording is read. ``rest`` is the mark without its tag;
    ``known`` has the stand-ins of earlier marks, by number. Raises CanonicalError.
    """
    match rest:
        case [int(number)]:
            found = StandIn(number) if known is None else known.get(number)
            if found is None:
                raise CanonicalError(f"expected the number of an object that was described before, found {number}")
            return found
        case [int(number), str(kind), *attributes] if len(attributes) == len(_ATTRIBUTES.get(kind, ())):
            found = StandIn(number, kind, tuple(attributes))
            return found if known is None else known.setdefault(number, found)
        case _:
            raise CanonicalError("expected the mark of an object, found something else")


def _definition(value: Definition, _text: Text) -> list[JsonValue]:
    return ["Definition", value.name, value.version, value.crds, value.enabled_script]


def _settings(value: ResolvedSettings, _text: Text) -> list[JsonValue]:
    return ["Settings", value.checksum]


def _directives(value: Directives, text: Text) -> list[JsonValue]:
    release_policy, note = value.release_policy, value.rolled_back
    return [
        "Directives",
        text(value.requested),
        value.maintenance,
        release_policy.deletion._value_,  # faster than `value`, which is a property
        release_policy.drift.mode._value_,
        value.asked,
        value.upgrade.rollback,
        None if note is None else [note.revision, note.version, note.wanted, note.reason, text(note.message)],
    ]


def _manifest(value: Manifest, _text: Text) -> list[JsonValue]:
    return ["Manifest", str(value.descriptor.digest)]


def _scope(value: WorkScope, _text: Text) -> list[JsonValue]:
    return ["Scope", value.name]


_DETAILS: Final[dict[type, Callable[[Never, Text], list[JsonValue]]]] = {
    Definition: _definition,
    ResolvedSettings: _settings,
    Directives: _directives,
    Manifest: _manifest,
    WorkScope: _scope,
}
"""The functions that return the kind and the recorded attributes of an object, by class. For objects of other classes, only
the kind is recorded.
"""
MARKED: Final = frozenset((*_DETAILS, dict))
"""The classes whose objects are always recorded as marks: as a number and a few attributes, and not with their content."""


def _details(value: object, text: Text) -> list[JsonValue]:
    kind = type(value)
    details = _DETAILS.get(kind)
    return [kind.__name__] if details is None else details(cast("Never", value), text)
