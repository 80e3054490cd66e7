"""A profile: the stacks that were sampled, each with the time that was spent in it.

A profile contains no values of variables. It has only the function, the file and the line of each frame.
"""

from dataclasses import dataclass
from typing import Final

MAIN: Final = "main thread"
"""The thread of the event loop."""
OTHERS: Final = "other threads"
MAX_SECONDS: Final = 60.0
DEFAULT_SECONDS: Final = 10.0
_MAX_LENGTH: Final = 6


@dataclass(frozen=True, slots=True)
class FrameSnapshot:
    """A line of a function. ``file`` is relative to the folder of the libraries, such as ``wharfinger/queue/worker.py``."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class StackSnapshot:
    """A stack of ``thread`` (MAIN or OTHERS), with the time that was spent in it.

    ``frames`` are the positions of its frames in the profile's list, outermost first. ``waiting``: the event loop waited for I/O
    or a timer, or another thread waited for I/O or a lock.
    """

    thread: str
    frames: tuple[int, ...]
    seconds: float
    samples: int
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class ProfileSnapshot:
    """A profile that took ``seconds``; the stacks that took the most time come first.

    ``threads`` is the largest number of threads in one sample; idle threads of the pool of worker threads are not
    counted. ``main_cpu_s``, ``others_cpu_s`` and ``sampling_cpu_s`` are the processor times of the main thread, of all other
    threads (including the thread that sampled), and of the thread that sampled.

    ``unlisted_s`` is the time in stacks that are left out because there were too many different stacks.
    """

    seconds: float
    samples: int
    threads: int
    frames: tuple[FrameSnapshot, ...]
    stacks: tuple[StackSnapshot, ...]
    main_cpu_s: float = 0.0
    others_cpu_s: float = 0.0
    sampling_cpu_s: float = 0.0
    unlisted_s: float = 0.0


def read_seconds(text: str) -> float | None:
    """Parse the length of a profile; None if it is not a positive decimal number up to MAX_SECONDS."""
    whole, _, part = text.partition(".")
    if len(text) > _MAX_LENGTH or not all(each.isascii() and each.isdigit() for each in (whole, part or "0")):
        return None
    return seconds if 0 < (seconds := float(text)) <= MAX_SECONDS else None
