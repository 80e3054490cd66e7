"""Samples of real frames. They are weighted by time, their number is bounded, and they never contain values of variables."""

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
import trio

from wharfinger.debug.profile import samples as module
from wharfinger.debug.profile.profile import MAIN, OTHERS
from wharfinger.debug.profile.samples import MAX_DEPTH, ProcessorTimes, Samples
from wharfinger.kube.names import is_label

SPENT = ProcessorTimes(0.5, 0.25, 0.125)
SECRET = "planted-value-5T"


def here() -> FrameType:
    return sys._getframe(1)


def outer(secret: str) -> FrameType:
    return inner(secret)


def inner(_secret: str) -> FrameType:
    return here()


def named(file: str, function: str) -> FrameType:
    """Return a frame of a function with this name in this file."""
    space: dict[str, Callable[[], FrameType]] = {}
    exec(compile(f"import sys\ndef {function}(): return sys._getframe()\n", file, "exec"), space)  # noqa: S102
    return space[function]()


def test_a_stack_is_weighted_by_the_time_since_the_last_sample() -> None:
    samples, frame = Samples(main_thread=1), outer(SECRET)
    for threads, seconds in (((1,), 0.5), ((1, 2), 1.0)):
        samples.add(dict.fromkeys(threads, frame), seconds)
    found = samples.profile(1.5, SPENT)
    assert (found.seconds, found.samples, found.threads) == (1.5, 2, 2)
    assert (found.main_cpu_s, found.others_cpu_s, found.sampling_cpu_s) == (0.5, 0.25, 0.125)
    assert [(each.thread, each.seconds, each.samples, each.waiting) for each in found.stacks] == [
        (MAIN, 1.5, 2, False),
        (OTHERS, 1.0, 1, False),
    ]
    assert found.stacks[0].frames == found.stacks[1].frames
    *_, above, innermost = (found.frames[at] for at in found.stacks[0].frames)
    assert (above.function, innermost.function) == ("outer", "inner")
    assert innermost.line == frame.f_lineno


def test_no_value_and_no_folder_of_this_machine_is_in_a_profile() -> None:
    samples = Samples(main_thread=1)
    samples.add({1: outer(SECRET), 2: named(f"<{SECRET}>", "f"), 3: named(f"/home/{SECRET}/a/b.py", "g")}, 1.0)
    found = samples.profile(1.0, SPENT)
    assert SECRET not in repr(found)
    assert str(Path.cwd()) not in repr(found)
    assert not [each.file for each in found.frames if each.file.startswith(os.sep)]
    assert {"<generated>", "b.py"} <= {each.file for each in found.frames}


def test_files_of_libraries_are_relative_to_the_folder_of_libraries() -> None:
    files = [is_label.__code__.co_filename, trio.run.__code__.co_filename, dataclasses.replace.__code__.co_filename]
    assert [module._relative(file) for file in files] == [
        "wharfinger/kube/names.py",
        "trio/_core/_run.py",
        "dataclasses.py",
    ]


def test_the_number_of_different_stacks_is_bounded() -> None:
    samples = Samples(main_thread=1, max_stacks=2)
    for number in range(5):
        samples.add({1: named("<string>", f"f{number}")}, 1.0)
    samples.add({1: named("<string>", "f9")}, 0.5)
    found = samples.profile(5.5, SPENT)
    assert (len(found.stacks), found.unlisted_s) == (2, 3.5)


def test_the_depth_of_a_stack_is_bounded() -> None:
    def deep(left: int) -> FrameType:
        return deep(left - 1) if left else here()

    samples = Samples(main_thread=1)
    samples.add({1: deep(MAX_DEPTH + 100)}, 1.0)
    (stack,) = samples.profile(1.0, SPENT).stacks
    assert len(stack.frames) == MAX_DEPTH


@pytest.mark.parametrize(
    ("file", "function", "is_main", "waits"),
    [
        (trio.lowlevel.__file__, "get_events", True, False),
        (str(Path(trio.__file__).parent / "_core" / "_io_epoll.py"), "get_events", False, False),
        (str(Path(os.__file__).parent / "threading.py"), "wait", False, True),
        (str(Path(os.__file__).parent / "threading.py"), "wait", True, False),
    ],
)
def test_waiting_stacks_are_recognized(file: str, function: str, is_main: bool, waits: bool) -> None:
    """A main thread that waits for a lock blocks the event loop, so this does not count as waiting."""
    samples = Samples(main_thread=1)
    samples.add({1 if is_main else 2: named(file, function)}, 1.0)
    (stack,) = samples.profile(1.0, SPENT).stacks
    assert stack.waiting == waits


def test_idle_workers_of_trio_are_left_out() -> None:
    samples = Samples(main_thread=1)
    samples.add({2: named(str(Path(trio.__file__).parent / "_core" / "_thread_cache.py"), "_work")}, 1.0)
    found = samples.profile(1.0, SPENT)
    assert (found.stacks, found.threads, found.samples) == ((), 0, 1)
