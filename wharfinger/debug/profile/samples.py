"""The samples of a profile while it is taken: stacks are counted, and values are never kept.

The weight of a sample is the time since the previous sample. Equal weights would make the waiting look longer than it was:
only one thread runs Python code at a time, so samples are further apart while a thread is busy.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NamedTuple

import trio

import wharfinger
from wharfinger.debug.profile.profile import MAIN, OTHERS, FrameSnapshot, ProfileSnapshot, StackSnapshot

MAX_STACKS: Final = 10_000
MAX_DEPTH: Final = 200
_ROOTS: Final = tuple(
    sorted(
        {
            f"{Path(path).parents[level]}{os.sep}"
            for path, level in ((wharfinger.__file__, 1), (trio.__file__, 1), (os.__file__, 0))
        },
        key=len,
        reverse=True,
    )
)
"""The folders that contain Wharfinger, the installed libraries, and the standard library; the innermost first."""
_GENERATED: Final = re.compile(r"<[a-z _.]{1,40}>")
_LOOP: Final = re.compile(r"trio/_core/_io_\w+\.py")
_POOL: Final = "trio/_core/_thread_cache.py"
_LOCKS: Final = frozenset(
    {("threading.py", "wait"), ("threading.py", "_wait_for_tstate_lock"), ("selectors.py", "select")}
)
"""The Python functions of the standard library in which a thread waits. A function written in C has no frame, so a wait in it
is found by the Python function that calls it.
"""
_Key = tuple[bool, tuple[int, ...]]
"""A stack: whether its thread is the main thread, and the code and the line of each frame, innermost first."""


class ProcessorTimes(NamedTuple):
    """The processor times of threads, in seconds. ``others`` is the time of all threads except the main thread. It includes
    ``sampling``, the time of the thread that samples.
    """

    main: float
    others: float
    sampling: float


class Samples:
    """The samples of one profile. Only one thread may use it."""

    def __init__(self, main_thread: int, *, max_stacks: int = MAX_STACKS) -> None:
        self._main_thread = main_thread
        self._max_stacks = max_stacks
        self._seconds: dict[_Key, float] = {}
        self._counts: dict[_Key, int] = {}
        self._codes: dict[int, CodeType] = {}  # kept, so that no other code gets the same id
        self._idle: dict[int, bool] = {}
        self._samples = 0
        self._threads = 0
        self._unlisted_s = 0.0

    def add(self, frames: Mapping[int, FrameType], seconds: float) -> None:
        """Count the stack of each thread, given its innermost frame; ``seconds`` is the time since the previous call."""
        threads = 0
        for thread, frame in frames.items():
            is_main = thread == self._main_thread
            if not is_main and self._is_idle(frame.f_code):
                continue
            threads += 1
            key = is_main, self._stack(frame)
            if key not in self._seconds and len(self._seconds) >= self._max_stacks:
                self._unlisted_s += seconds
                continue
            self._seconds[key] = self._seconds.get(key, 0.0) + seconds
            self._counts[key] = self._counts.get(key, 0) + 1
        self._samples += 1
        self._threads = max(self._threads, threads)

    def _is_idle(self, code: CodeType) -> bool:
        """Return whether a thread that is in this code belongs to the pool of worker threads, and has no work."""
        found = self._idle.get(id(code))
        if found is None:
            self._codes[id(code)] = code
            found = self._idle[id(code)] = _relative(code.co_filename) == _POOL
        return found

    def _stack(self, innermost: FrameType) -> tuple[int, ...]:
        found: list[int] = []
        frame: FrameType | None = innermost
        while frame is not None and len(found) < 2 * MAX_DEPTH:
            code = frame.f_code
            self._codes[id(code)] = code
            found += (id(code), frame.f_lineno or code.co_firstlineno)
            frame = frame.f_back
        return tuple(found)

    def profile(self, seconds: float, processor: ProcessorTimes) -> ProfileSnapshot:
        """Return the profile of all samples so far."""
        positions: dict[FrameSnapshot, int] = {}
        stacks = []
        for key, spent in sorted(self._seconds.items(), key=lambda each: -each[1]):
            is_main, flat = key
            frames = [self._frame(flat[at], flat[at + 1]) for at in range(0, len(flat), 2)]
            places = tuple(positions.setdefault(frame, len(positions)) for frame in reversed(frames))
            waiting = _is_waiting(frames[0], is_main=is_main)
            thread = MAIN if is_main else OTHERS
            stacks.append(StackSnapshot(thread, places, round(spent, 6), self._counts[key], waiting))
        return ProfileSnapshot(
            seconds=round(seconds, 6),
            samples=self._samples,
            threads=self._threads,
            frames=tuple(positions),
            stacks=tuple(stacks),
            main_cpu_s=round(processor.main, 6),
            others_cpu_s=round(processor.others, 6),
            sampling_cpu_s=round(processor.sampling, 6),
            unlisted_s=round(self._unlisted_s, 6),
        )

    def _frame(self, code_id: int, line: int) -> FrameSnapshot:
        code = self._codes[code_id]
        return FrameSnapshot(code.co_qualname, _relative(code.co_filename), line)


def _is_waiting(innermost: FrameSnapshot, *, is_main: bool) -> bool:
    """Return whether a thread that is in this frame waits. A main thread that waits for a lock blocks the event loop."""
    if is_main:
        return innermost.function.endswith(".get_events") and _LOOP.fullmatch(innermost.file) is not None
    name = innermost.function.rpartition(".")[2]
    return (innermost.file, name) in _LOCKS


def _relative(file: str) -> str:
    """Return the path of a file inside the folder that contains its library; only the name of any other file."""
    found = next((file[len(root) :] for root in _ROOTS if file.startswith(root)), None)
    if found is not None:
        return found
    if file.startswith("<"):
        return sys.intern(file) if _GENERATED.fullmatch(file) else "<generated>"
    return Path(file).name
