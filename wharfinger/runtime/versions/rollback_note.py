"""The part of a package's status about a rollback (``status.rollback``): the requested version, the running revision, and the
reason.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find

FAILED: Final = "UpgradeFailed"
REQUESTED: Final = "Requested"
NO_WAY_BACK: Final = "NoWayBack"
"""The reason that is reported if no rollback was possible. The daemon then continues with the version that the resource
requests.
"""


@dataclass(frozen=True, slots=True)
class RollbackNote:
    """A rollback: the revision that the package returned to, its version, the version that the resource asks for, and the
    reason.

    If ``revision`` is 0, the package did not return; ``message`` says why.
    """

    revision: int
    version: str
    wanted: str
    reason: str
    message: str

    @property
    def is_back(self) -> bool:
        """Return whether the package is in the former revision, or returning to it."""
        return self.revision > 0

    @property
    def line(self) -> str:
        """Return the note as one line."""
        if not self.is_back:
            return f"the package cannot return from {self.wanted} to a former revision: {self.message}"
        if self.wanted == self.version:  # the versions are the same, so the settings or the patches differ
            return f"rolled back to revision {self.revision} ({self.version}) and its settings: {self.message}"
        return f"rolled back from {self.wanted} to revision {self.revision} ({self.version}): {self.message}"


def rollback_object(note: RollbackNote) -> JsonObject:
    """Return ``status.rollback``; all fields are always present, so that a merge patch leaves no old field behind."""
    return {
        "revision": note.revision,
        "version": note.version,
        "wanted": note.wanted,
        "reason": note.reason,
        "message": note.message,
    }


def read_rollback_note(written: JsonValue) -> RollbackNote | None:
    """Read ``status.rollback``; None if it is missing or has another form."""
    if not isinstance(written, dict):
        return None
    revision = find(written, "revision")
    if not isinstance(revision, int) or isinstance(revision, bool):
        return None
    version, wanted, reason, message = (_text(written, name) for name in ("version", "wanted", "reason", "message"))
    return RollbackNote(revision, version, wanted, reason, message)


def _text(value: JsonObject, name: str) -> str:
    found = find(value, name)
    return found if isinstance(found, str) else ""
