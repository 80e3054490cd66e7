"""How far an operation is: how many objects are done, how many are left, and which of those are waited for.

What is left counts as left, also where it was done once: an object that failed or was given up is not done. Each object counts
once, whatever it is said to be.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue

MOST_NAMED: Final = 5
MAX_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts, and the first few of what is left, in the order in which it was told."""

    completed: int
    remaining: int
    waiting_for: tuple[str, ...]

    def as_json(self) -> JsonObject:
        """``{completed: 3, remaining: 1, waitingFor: [...]}``; always all three, so that a merge patch leaves nothing behind."""
        waiting_for: list[JsonValue] = list(self.waiting_for)
        return {"completed": self.completed, "remaining": self.remaining, "waitingFor": waiting_for}


def progress_of(completed: Iterable[str], remaining: Iterable[str]) -> Progress | None:
    """The progress of an operation over these objects; None when nothing is left to do."""
    left = dict.fromkeys(remaining)
    if not left:
        return None
    done = {name for name in completed if name not in left}
    return Progress(len(done), len(left), tuple(_cut(name) for name in list(left)[:MOST_NAMED]))


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
