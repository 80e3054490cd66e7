"""The parts of a package's recorded state that are needed to return to its former revision.

`ReadyRevision` is the revision with which the package was last Ready. `Rollback` records the reaction to a failed upgrade, or
to a user's request. The rollback is in force as long as the resource asks for the same state as when it was recorded
(``asked``). If the revision in its ``note`` is 0, no former revision could be used, and the `Rollback` only states this.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, find, find_int, find_object, find_str
from wharfinger.runtime.resources.recorded_inputs import RecordedInputs, read_inputs
from wharfinger.runtime.versions.rollback_note import RollbackNote

MAX_MESSAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class ReadyRevision:
    """A revision with which the package was Ready.

    ``inputs`` has the package, the version and the settings that the revision was made from. ``asked`` identifies the state
    that the resource asked for at that time. If a rollback made the revision, the resource asked for another state, so
    ``asked`` is empty.
    """

    asked: str
    revision: int
    inputs: RecordedInputs


@dataclass(frozen=True, slots=True)
class Rollback:
    """A rollback, or the finding that a rollback is impossible. ``generation`` is the resource's generation at that time.
    ``inputs`` has the package, the version and the settings to return to; None if a rollback is impossible.
    """

    asked: str
    generation: int
    inputs: RecordedInputs | None
    note: RollbackNote


def ready_document(ready: ReadyRevision | None) -> JsonObject | None:
    """Return the part of a package's recorded state that describes its last ready revision; None if there is none."""
    if ready is None:
        return None
    return {"asked": ready.asked, "revision": ready.revision, "wish": ready.inputs.document}


def read_ready(value: JsonObject) -> ReadyRevision | None:
    """Read the last ready revision from a package's recorded state; None if the state has none. Raises FormatError."""
    if find(value, "ready") is None:
        return None
    found = find_object(value, "ready")
    return ReadyRevision(find_str(found, "asked"), find_int(found, "revision"), read_inputs(find_object(found, "wish")))


def rollback_document(rollback: Rollback | None) -> JsonObject | None:
    """Return the document that records a rollback; None if there is no rollback."""
    if rollback is None:
        return None
    note = rollback.note
    return {
        "asked": rollback.asked,
        "generation": rollback.generation,
        "wish": rollback.inputs.document if rollback.inputs is not None else None,
        "revision": note.revision,
        "version": note.version,
        "wanted": note.wanted,
        "reason": note.reason,
        "message": note.message[:MAX_MESSAGE],
    }


def read_rollback(value: JsonObject) -> Rollback | None:
    """Read the rollback from a package's recorded state; None if it has none. Raises FormatError."""
    if find(value, "rollback") is None:
        return None
    found = find_object(value, "rollback")
    version, wanted, reason, message = (find_str(found, name) for name in ("version", "wanted", "reason", "message"))
    inputs = read_inputs(find_object(found, "wish")) if found.get("wish") is not None else None
    note = RollbackNote(find_int(found, "revision"), version, wanted, reason, message)
    return Rollback(find_str(found, "asked"), find_int(found, "generation"), inputs, note)
