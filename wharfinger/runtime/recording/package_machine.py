"""The recorded form of a package's state machine: its events with their surroundings, and its state
(:mod:`~wharfinger.runtime.recording.package_form`).

The surroundings of an event are its time, and everything that the state machine reads beside the event and the state of the
package: which operations run, and which scopes are cancelled. The text of a log line is not recorded, because it repeats texts
of the event.
"""

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import Final, cast

from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.lifecycle import desired_state, lifecycle_machine
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.package import effects, enabled_vote, events, findings
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import Log
from wharfinger.runtime.package.events import Changed, Event
from wharfinger.runtime.package.facts import DesiredGiven
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import Attempt, Brought, Package
from wharfinger.runtime.recording.canonical import CanonicalError, Codec, Encode, Text, kinds_of
from wharfinger.runtime.recording.marks import MARKED, Marks, StandIn, form_of, stand_in
from wharfinger.runtime.recording.package_form import package_changes, package_of
from wharfinger.runtime.recording.status_form import status_after, status_changes
from wharfinger.runtime.resources.identity import AppId, ModuleId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus, Stage
from wharfinger.runtime.status.reasons import Reason

_LOADING: Final = 1
_SUSPENDED: Final = 2
_APPLYING: Final = 4
VOTE_CANCELLED: Final = 8
"""The flag for a cancelled run of the enabled script: it is set if the scope of the run is cancelled."""
CRDS_CANCELLED: Final = 16
"""The flag for a cancelled task that ensures the CRDs: it is set if the scope of the task is cancelled."""
_REMOVING: Final = 32


class _Changes:
    """The changes of a package's status. A Changed event that was read from a recording contains this object instead of the
    whole status.
    """

    __slots__ = ("changes",)

    def __init__(self, changes: JsonValue) -> None:
        self.changes = changes


_OPAQUE: Final = {"PackageRead": ("hooks",), "ObjectsKnown": ("objects",), "ChartApplied": ("objects",)}
"""The fields of events whose objects are recorded as marks (see :mod:`~wharfinger.runtime.recording.marks`). Without this list,
the codec would write these objects in full, because they are tuples.
"""
_KEPT: Final = {
    "AppId": frozenset({"namespace", "instance"}),
    "ModuleId": frozenset({"name", "namespace"}),
    **dict.fromkeys(("DesiredGiven", "FoundInstalled"), frozenset({"package", "version"})),
    "AccountGiven": frozenset({"account"}),
    "Brought": frozenset({"inputs", "fingerprint"}),
    "ChartApplied": frozenset({"inputs"}),
    "DesiredAttempt": frozenset({"asked"}),
    **{f"Scheduler{name}": frozenset({"name"}) for name in kinds_of(scheduler_events)},
    **dict.fromkeys(
        ("SchedulerRescheduled", "SchedulerDecided", "SchedulerDisable", "SchedulerSchedule"),
        frozenset({"name", "reason"}),
    ),
}
_KINDS: Final = {
    **kinds_of(events, findings, effects, desired_state, enabled_vote),
    **{f"Scheduler{name}": kind for name, kind in kinds_of(scheduler_events).items()},
    **{
        kind.__name__: kind for kind in (AppId, ModuleId, DesiredGiven, Brought, Failure, Stage, Reason, DeletionPolicy)
    },
    "DesiredAttempt": Attempt,  # an effect has the same name, Attempt
}


_KINDS.pop("Log")  # `PackageCodec.other` writes it without its text


class PackageCodec(Codec):
    """The canonical form of a package's state, events and effects. `writer` returns a codec that writes a recording, `reader`
    one that reads it. ``marks`` has the numbers that replace objects of the package in a recording.
    """

    def __init__(self) -> None:
        super().__init__(_KINDS, _KEPT, _OPAQUE)
        self.marks: Marks | None = None
        self.status: PackageStatus | None = None
        """The package's status before the event whose record is being written."""
        self._known: dict[int, StandIn] | None = None
        self._marked = set(MARKED)

    def writer(self) -> "PackageCodec":
        """Return a codec that writes the records of one package."""
        codec = copy(self)
        codec.marks = Marks()
        return codec

    def reader(self) -> "PackageCodec":
        """Return a codec that reads the records of one package. The first of these records must have a whole state."""
        codec = copy(self)
        codec._known = {}  # noqa: SLF001 - its own
        return codec

    def mark(self, value: object, text: Text) -> JsonValue:
        """Return the mark that is written in place of an object. An empty tuple is written as it is and not as a mark, because
        the state machine itself makes empty tuples, too.
        """
        kind = type(value)
        if self.marks is not None and kind in self._marked:
            return self.marks.form(value, text)
        if value == ():
            return ["()"]
        if self.marks is None or isinstance(value, StandIn):
            return form_of(value)
        if kind is not tuple:
            self._marked.add(kind)
        return self.marks.form(value, text)

    def _other(self, kind: type, value: object, text: Text, inner: Encode) -> JsonValue:
        if self.marks is not None and kind in self._marked:
            return self.marks.form(value, text)
        return super()._other(kind, value, text, inner)

    def container(self, value: object, text: Text, inner: Encode) -> JsonValue:
        """Return the recorded form of a value that is neither a record nor a member of an enumeration. For a map, return a mark
        instead of its content, because all maps are settings or values.
        """
        return self.mark(value, text) if isinstance(value, Mapping) else super().container(value, text, inner)

    def other(self, value: object, text: Text) -> JsonValue:
        """Return the form of a value that is neither a record, nor an enumeration, nor a container of them."""
        match value:
            case Package():
                return package_changes(self, None, value, text, self.mark)
            case PackageStatus():
                return ["status", status_changes(self.status, value, text)]
            case _Changes(changes=changes):
                return ["status", changes]
            case Log(warning=warning):
                return ["Log", "", warning]
            case _:
                return self.mark(value, text)

    def decode(self, value: JsonValue) -> object:
        """Return the value that ``value``, a recorded form, stands for. Raises CanonicalError."""
        match value:
            case dict():
                return package_of(self, value)
            case ["status", changes]:
                return _Changes(changes)
            case ["Log", str(text), bool(warning)]:
                return Log(text, warning)
            case ["~", *rest]:
                return stand_in(rest, self._known)
            case _:
                return super().decode(value)


PACKAGE_CODEC: Final = PackageCodec()
"""A codec that reads a record without the earlier records. If an earlier record describes an object, this codec knows only the
number of the object.
"""


def surroundings(package: Package, around: Around) -> list[object]:
    """Return the surroundings of an event (the inputs of a step that are not part of the package's state) in their recorded
    form. Call this at the time of the event, because scopes may be cancelled later.
    """
    operations, seen = around.operations, 0
    if operations is not None:
        if operations.update is not None:
            seen = _LOADING
        if operations.desired.suspended:
            seen |= _SUSPENDED
        if operations.applying:
            seen |= _APPLYING
        if operations.removal is not None:
            seen |= _REMOVING
    voting, ensuring = package.vote.voting, package.crds.scope
    if voting is not None and voting.cancelled:
        seen |= VOTE_CANCELLED
    if ensuring is not None and ensuring.cancelled:
        seen |= CRDS_CANCELLED
    return [around.now, seen]


def package_step(state: object, event: object, at: JsonValue) -> tuple[object, tuple[object, ...]]:
    """Repeat the step of a package in a replay; return the new state and the effects. Raises CanonicalError."""
    package = cast("Package", state)
    if isinstance(event, Changed) and isinstance(changed := cast("object", event.status), _Changes):
        event = Changed(status_after(package.status, changed.changes))
    match at:
        case [str(now), int(seen)]:
            scopes: tuple[tuple[object, int], ...] = (
                (package.vote.voting, VOTE_CANCELLED),
                (package.crds.scope, CRDS_CANCELLED),
            )
            for scope, mark in scopes:
                if isinstance(scope, StandIn):
                    scope.cancelled = bool(seen & mark)
            wanted = DesiredState("", "", "", "", suspended=bool(seen & _SUSPENDED))
            operations = lifecycle_machine.Package(
                wanted,
                update=1 if seen & _LOADING else None,
                removal=1 if seen & _REMOVING else None,
                applying=bool(seen & _APPLYING),
            )
            return step(package, cast("Event", event), Around(datetime.fromisoformat(now), operations))
        case _:
            raise CanonicalError("expected the time and the operations of an event, found something else")
