"""The progress of an operation: the number of objects that are done, the number of objects that are left, and the names of
some objects that are left.

An object that failed counts as left, even if it was done earlier. Each object counts once, however often it is reported.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue

MOST_NAMED: Final = 5
MAX_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """The numbers of objects that are done and that are left. ``waiting_for`` has the names of the first few objects that are
    left, in the order in which they were reported.
    """

    completed: int
    remaining: int
    waiting_for: tuple[str, ...]

    def as_json(self) -> JsonObject:
        """Return ``{completed: 3, remaining: 1, waitingFor: [...]}``.

        All three fields are always present, so that a merge patch leaves no old field behind.
        """
        waiting_for: list[JsonValue] = list(self.waiting_for)
        return {"completed": self.completed, "remaining": self.remaining, "waitingFor": waiting_for}


def progress_of(completed: Iterable[str], remaining: Iterable[str]) -> Progress | None:
    """Return the progress of an operation over these objects; None if nothing is left to do."""
    left = dict.fromkeys(remaining)
    if not left:
        return None
    done = {name for name in completed if name not in left}
    return Progress(len(done), len(left), tuple(_cut(name) for name in list(left)[:MOST_NAMED]))


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
