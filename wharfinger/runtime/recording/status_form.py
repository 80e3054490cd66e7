"""The form of a package's status in a recording: the parts that a step changed, or all parts.

A form is a list of three objects: the conditions of stages, the other fields by their names, and the external conditions
(None for a condition that was dropped). `status_changes` makes the form from the statuses before and after a step, and
`status_after` returns the status after the step.
"""

from collections.abc import Callable
from datetime import datetime
from itertools import compress
from operator import attrgetter, is_not
from typing import Final, Protocol, cast

from msgspec.structs import replace

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.recording.canonical import CanonicalError, Codec, Text
from wharfinger.runtime.status.package_status import Condition, ExternalCondition, PackageStatus, Stage, Truth
from wharfinger.runtime.status.progress import Progress
from wharfinger.runtime.versions.rollback_note import RollbackNote
from wharfinger.runtime.versions.version_note import VersionNote

OTHERS: Final = tuple(name for name in PackageStatus.__struct_fields__ if name not in ("stages", "external"))
"""The fields of a status except for ``stages`` and ``external``, in the order in which the class declares them."""
_FIELDS: Final = cast("Callable[[PackageStatus], tuple[object, ...]]", attrgetter(*OTHERS))
_NAMES: Final = frozenset({"version", "digest", "namespace", "wanted"})
"""The fields whose texts are not masked, because they are names."""
_VALUES: Final = Codec(
    {each.__name__: each for each in (Condition, ExternalCondition, Truth, Progress, VersionNote, RollbackNote)},
    {
        **dict.fromkeys(("Condition", "ExternalCondition"), frozenset({"reason"})),
        "RollbackNote": frozenset({"reason", "version", "wanted"}),
    },
)


class _Replace(Protocol):
    def __call__(self, status: PackageStatus, /, **changed: object) -> PackageStatus: ...


class _Make(Protocol):
    def __call__(self, **values: object) -> PackageStatus: ...


_replace: Final = cast("_Replace", replace)
_make: Final = cast("_Make", PackageStatus)


def status_changes(before: PackageStatus | None, after: PackageStatus, text: Text) -> JsonValue:
    """Return the parts of a status that changed, in recorded form; all parts if there was no earlier status."""
    stages: JsonObject = {}
    if before is None or before.stages is not after.stages:
        old = before.stages if before is not None else {}
        for stage, new in after.stages.items():
            if (was := old.get(stage)) is not new and was != new:
                stages[stage._value_] = _condition(new, text)
    others: JsonObject = {}
    now = _FIELDS(after)
    if before is None:
        others = {name: _other(name, value, text) for name, value in zip(OTHERS, now, strict=True)}
    elif (was_fields := _FIELDS(before)) != now:
        changes = compress(zip(OTHERS, was_fields, now, strict=True), map(is_not, was_fields, now))
        others = {name: _other(name, new, text) for name, known, new in changes if known != new}
    external: JsonObject = {}
    if before is None or before.external is not after.external:
        earlier = before.external if before is not None else {}
        for kind, given in after.external.items():
            if (known := earlier.get(kind)) is not given and known != given:
                external[kind] = _external(given, text)
        for kind in earlier:
            if kind not in after.external:
                external[kind] = None
    return [stages, others, external]


def status_after(before: PackageStatus | None, form: JsonValue) -> PackageStatus:
    """Return the status that results from ``before`` and the recorded changes in ``form``. If ``before`` is None, the form must
    have all parts of a status. Raises CanonicalError.
    """
    match form:
        case [dict() as stages, dict() as others, dict() as external]:
            pass
        case _:
            raise CanonicalError("expected the changes of a status, found something else")
    try:
        new: dict[str, object] = {name: _VALUES.decode(value) for name, value in others.items()}
        if stages or before is None:
            changed = {Stage(name): _read_condition(value) for name, value in stages.items()}
            new["stages"] = {**(before.stages if before is not None else {}), **changed}
        if external or before is None:
            kept = (
                {}
                if before is None
                else {kind: one for kind, one in before.external.items() if external.get(kind, one) is not None}
            )
            new["external"] = {
                **kept,
                **{kind: _read_external(value) for kind, value in external.items() if value is not None},
            }
        return _make(**new) if before is None else _replace(before, **new)
    except (TypeError, ValueError, KeyError) as error:
        raise CanonicalError(
            f"expected the fields that this version of Wharfinger writes into a status, found others: {error}"
        ) from error


def _other(name: str, value: object, text: Text) -> JsonValue:
    return cast("str", value) if name in _NAMES else _VALUES.encode(value, text)


def _condition(one: Condition, text: Text) -> JsonValue:
    # Members of enumerations and the time need no encoding, because the library that writes the record can write them.
    return cast("JsonValue", [one.truth, str(one.reason), text(one.message), one.since, one.permanent])


def _external(one: ExternalCondition, text: Text) -> JsonValue:
    return cast("JsonValue", [one.truth, str(one.reason), text(one.message), one.since, one.generation])


def _read_condition(form: JsonValue) -> Condition:
    match form:
        case [str(truth), str(reason), str(message), str(since), bool(permanent)]:
            return Condition(Truth(truth), reason, message, datetime.fromisoformat(since), permanent)
        case _:
            raise ValueError("not the form of a condition")


def _read_external(form: JsonValue) -> ExternalCondition:
    match form:
        case [str(truth), str(reason), str(message), str(since), int(generation)]:
            return ExternalCondition(Truth(truth), reason, message, datetime.fromisoformat(since), generation)
        case _:
            raise ValueError("not the form of an external condition")
