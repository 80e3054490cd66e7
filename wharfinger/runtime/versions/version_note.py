"""The part of a package's status about the choice of its version (``status.update``)."""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.runtime.versions.version_chooser import Choice
from wharfinger.runtime.versions.version_policy import VersionPolicy

TAG_MOVED: Final = "TagMoved"


@dataclass(frozen=True, slots=True)
class VersionNote:
    """The chosen version of a package, and the reason for the choice. ``pending`` is another version that waits, for example
    for an approval; "" if no version waits. ``follows`` is the range or the channel that the package follows, "" for an exact
    version.
    """

    follows: str
    chosen: str
    reason: str
    message: str
    pending: str = ""

    @property
    def line(self) -> str:
        """Return the note as one line if a version waits or a tag has moved; otherwise ""."""
        return self.message if self.pending or self.reason == TAG_MOVED else ""


def note_of(policy: VersionPolicy, choice: Choice, moved: str) -> VersionNote:
    """Return the note about a choice; ``moved`` describes the tag that has moved, "" if no tag has moved."""
    follows = str(policy.follows) if policy.follows is not None else ""
    if moved:
        reason = choice.why.value if choice.pending else TAG_MOVED
        return VersionNote(follows, choice.version, reason, f"{choice.message}; {moved}", choice.pending)
    return VersionNote(follows, choice.version, choice.why.value, choice.message, choice.pending)


def moved_note(version: str, moved: str) -> VersionNote:
    """Return the note about an exact version whose tag has moved."""
    return VersionNote("", version, TAG_MOVED, moved)


def note_object(note: VersionNote) -> JsonObject:
    """Return a note in the form of ``status.update`` of a resource."""
    body: JsonObject = {"chosen": note.chosen, "reason": note.reason, "message": note.message}
    if note.follows:
        body["follows"] = note.follows
    if note.pending:
        body["pending"] = note.pending
    return body


def read_note(written: JsonValue) -> VersionNote | None:
    """Read ``status.update``; None if it is missing or has another form."""
    if not isinstance(written, dict):
        return None
    chosen = _text(written, "chosen")
    if not chosen:
        return None
    follows, reason, message = (_text(written, name) for name in ("follows", "reason", "message"))
    return VersionNote(follows, chosen, reason, message, _text(written, "pending"))


def _text(value: JsonObject, name: str) -> str:
    found = find(value, name)
    return found if isinstance(found, str) else ""
