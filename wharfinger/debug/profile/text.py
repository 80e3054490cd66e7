"""A profile as text: how long the event loop waited, and the functions that took the time. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from wharfinger.debug.profile.profile import MAIN, OTHERS, FrameSnapshot, ProfileSnapshot
from wharfinger.formats.listing import counted
from wharfinger.formats.text_table import layout

MAX_ROWS: Final = 20
_OWN: Final = "wharfinger/"
_Function = tuple[str, str]
"""A function and its file."""


def profile_lines(profile: ProfileSnapshot, columns: int | None) -> list[str]:
    """Return the lines: a summary, the functions of the main thread by their own time and by the time including calls, and the
    functions of other threads.

    ``columns`` is the width of the terminal, None if there is none.
    """
    own, total = _times(profile, MAIN)
    others, others_total = _times(profile, OTHERS)
    ours = [each for each in total if each[1].startswith(_OWN)]
    return [
        *_summary(profile),
        *_table("MAIN THREAD, BY TIME IN THE FUNCTION ITSELF", _longest(own, own), own, total, columns),
        *_table("MAIN THREAD, BY TIME INCLUDING CALLS", _longest(ours, total), own, total, columns),
        *_table("OTHER THREADS", _longest(others, others), others, others_total, columns),
    ]


def _summary(profile: ProfileSnapshot) -> Iterator[str]:
    yield f"{profile.seconds:.2f} s, {counted(profile.samples, 'sample')}, {counted(profile.threads, 'thread')}"
    yield ""
    rows = []
    for thread, wait in ((MAIN, "waiting for I/O and timers"), (OTHERS, "waiting")):
        stacks = [stack for stack in profile.stacks if stack.thread == thread]
        waited = sum(stack.seconds for stack in stacks if stack.waiting)
        worked = sum(stack.seconds for stack in stacks if not stack.waiting)
        rows += [
            (thread, wait, f"{waited:.2f} s", _share(waited, waited + worked)),
            (thread, "everything else", f"{worked:.2f} s", _share(worked, waited + worked)),
        ]
    yield from layout(("THREAD", "STATE", "TIME", "SHARE"), rows, None)
    yield ""
    yield (
        f"Processor time: {profile.main_cpu_s:.2f} s in the main thread, {profile.others_cpu_s:.2f} s in other "
        f"threads, of which {profile.sampling_cpu_s:.2f} s to take this profile."
    )
    if profile.unlisted_s:
        yield f"There were too many different stacks: {profile.unlisted_s:.2f} s are not in this profile."


def _table(
    title: str,
    functions: Sequence[_Function],
    own: dict[_Function, float],
    total: dict[_Function, float],
    columns: int | None,
) -> Iterator[str]:
    if not functions:
        return
    whole = sum(own.values())
    rows = [
        (
            f"{own.get(each, 0.0):.2f} s",
            _share(own.get(each, 0.0), whole),
            f"{total[each]:.2f} s",
            _share(total[each], whole),
            f"{each[0]} ({each[1]})",
        )
        for each in functions[:MAX_ROWS]
    ]
    yield ""
    yield from layout(("SELF", "SELF%", "TOTAL", "TOTAL%", title), rows, columns)
    if len(functions) > MAX_ROWS:
        yield f"({len(functions) - MAX_ROWS} more)"


def _longest(functions: Iterable[_Function], times: Mapping[_Function, float]) -> list[_Function]:
    return sorted(functions, key=lambda each: (-times[each], each))


def _times(profile: ProfileSnapshot, thread: str) -> tuple[dict[_Function, float], dict[_Function, float]]:
    """Return the time in each function itself, and its time including calls; a recursive function counts once in a stack."""
    own: dict[_Function, float] = defaultdict(float)
    total: dict[_Function, float] = defaultdict(float)
    for stack in profile.stacks:
        if stack.thread != thread or stack.waiting or not stack.frames:
            continue
        functions = [_function(profile.frames[at]) for at in stack.frames]
        own[functions[-1]] += stack.seconds
        for each in set(functions):
            total[each] += stack.seconds
    return dict(own), dict(total)


def _function(frame: FrameSnapshot) -> _Function:
    return frame.function, frame.file


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
