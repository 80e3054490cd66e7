"""Profiles as text."""

from dataclasses import replace

from tests.debug.profile.profiles import PROFILE
from wharfinger.debug.profile.profile import MAIN, FrameSnapshot, StackSnapshot
from wharfinger.debug.profile.text import MAX_ROWS, profile_lines

TEXT = """\
10.00 s, 900 samples, 2 threads

THREAD          STATE                        TIME     SHARE
main thread     waiting for I/O and timers   7.50 s   75 %
main thread     everything else              2.50 s   25 %
other threads   waiting                      0.00 s   0 %
other threads   everything else              0.50 s   100 %

Processor time: 2.25 s in the main thread, 0.50 s in other threads, of which 0.10 s to take this profile.

SELF     SELF%   TOTAL    TOTAL%   MAIN THREAD, BY TIME IN THE FUNCTION ITSELF
1.50 s   60 %    1.50 s   60 %     loads (json/__init__.py)
0.75 s   30 %    2.25 s   90 %     Worker.step (wharfinger/queue/worker.py)
0.25 s   10 %    2.50 s   100 %    run (trio/_core/_run.py)

SELF     SELF%   TOTAL    TOTAL%   MAIN THREAD, BY TIME INCLUDING CALLS
0.75 s   30 %    2.25 s   90 %     Worker.step (wharfinger/queue/worker.py)

SELF     SELF%   TOTAL    TOTAL%   OTHER THREADS
0.50 s   100 %   0.50 s   100 %    read;all (wharfinger/kube/names.py)
"""


def test_functions_are_listed_by_their_time() -> None:
    """A function that occurs twice in a stack is counted once, and waiting is not counted as work."""
    assert "".join(f"{line}\n" for line in profile_lines(PROFILE, None)) == TEXT


def test_an_idle_daemon_has_no_tables_of_functions() -> None:
    idle = replace(PROFILE, stacks=PROFILE.stacks[:1], threads=1)
    lines = profile_lines(idle, None)
    assert lines[0] == "10.00 s, 900 samples, 1 thread"
    assert not [line for line in lines if line.startswith("SELF")]
    assert "other threads   waiting                      0.00 s   -" in lines


def test_functions_with_the_same_time_are_listed_by_name() -> None:
    names = [f"f{number}" for number in range(9)]
    frames = tuple(FrameSnapshot(name, "wharfinger/a.py", 1) for name in reversed(names))
    stack = StackSnapshot(MAIN, tuple(range(len(frames))), 1.0, 1)
    lines = profile_lines(replace(PROFILE, frames=frames, stacks=(stack,)), None)
    table = lines[[line.endswith("INCLUDING CALLS") for line in lines].index(True) + 1 :]
    assert [line.split()[-2] for line in table if "a.py" in line] == names


def test_long_lists_of_functions_are_cut_and_missing_time_is_reported() -> None:
    frames = tuple(FrameSnapshot(f"f{number}", "a.py", 1) for number in range(MAX_ROWS + 3))
    stacks = tuple(StackSnapshot(MAIN, (number,), 1.0, 1) for number in range(len(frames)))
    lines = profile_lines(replace(PROFILE, frames=frames, stacks=stacks, unlisted_s=1.5), 60)
    assert lines[-1] == "(3 more)"
    assert "There were too many different stacks: 1.50 s are not in this profile." in lines
