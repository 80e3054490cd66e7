"""Profiles in the formats of other tools: collapsed stacks for flame graphs, and files of speedscope. Pure.

The stacks of waiting threads have a separate root frame, so that they do not hide the work.
"""

from typing import Final

from wharfinger.debug.profile.profile import FrameSnapshot, ProfileSnapshot, StackSnapshot
from wharfinger.formats.json.value import JsonObject

SPEEDSCOPE: Final = "https://www.speedscope.app/file-format-schema.json"
_MICROSECONDS: Final = 1_000_000


def collapsed_stacks(profile: ProfileSnapshot) -> str:
    """Return a line for each stack: its frames, outermost first, and the time in microseconds.

    Flamegraph.pl, inferno and speedscope read this format.
    """
    frames = [_frame(frame) for frame in profile.frames]
    lines = []
    for stack in profile.stacks:
        names = ";".join((_root(stack), *(frames[at] for at in stack.frames)))
        lines.append(f"{names} {round(stack.seconds * _MICROSECONDS)}\n")
    return "".join(lines)


def speedscope_file(profile: ProfileSnapshot) -> JsonObject:
    """Return a file for https://www.speedscope.app. It has one profile for each thread, and a separate one for the stacks in
    which that thread waits.
    """
    roots = list(dict.fromkeys(_root(stack) for stack in profile.stacks))
    return {
        "$schema": SPEEDSCOPE,
        "name": "wharfinger",
        "exporter": "wharfinger profile",
        "shared": {
            "frames": [{"name": each.function, "file": each.file, "line": each.line} for each in profile.frames]
        },
        "profiles": [_sampled(root, [stack for stack in profile.stacks if _root(stack) == root]) for root in roots],
    }


def _sampled(root: str, stacks: list[StackSnapshot]) -> JsonObject:
    return {
        "type": "sampled",
        "name": root,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(stack.seconds for stack in stacks),
        "samples": [list(stack.frames) for stack in stacks],
        "weights": [stack.seconds for stack in stacks],
    }


def _root(stack: StackSnapshot) -> str:
    return f"{stack.thread} (waiting)" if stack.waiting else stack.thread


def _frame(frame: FrameSnapshot) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})".replace(";", ",")
