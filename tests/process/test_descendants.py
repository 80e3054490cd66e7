"""The processes that belong to a run: the rules with invented processes, and scans of real ones."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.process.children import PATH, TAG, python
from wharfinger.process.descendants import (
    Mark,
    Seen,
    belonging,
    highest_unrelated_pid,
    last_pid,
    read_process,
    read_stat,
    scan,
    ticks_now,
)
from wharfinger.process.proc_stat import MARKER, ProcessStat

LEADER, BORN = 100, 5000


def seen(
    pid: int, *, pgid: int = 1, sid: int = 1, start: int = BORN, tokens: str = "", state: str = "S", threads: int = 1
) -> Seen:
    stat = ProcessStat(
        pid, state, 1, pgid, sid, start, threads, exiting=False, kernel_thread=False, environ_bytes=len(tokens)
    )
    return Seen(stat, frozenset(tokens.split()), undecided=False)


def numbers(found: list[Seen]) -> list[int]:
    return [one.stat.pid for one in found]


HELD = Mark("mine", LEADER, BORN, held=True)
FOREIGN = Mark("mine", LEADER, BORN)
LEADER_SEEN = seen(LEADER, pgid=LEADER, sid=LEADER, tokens="mine")
MEMBER = seen(101, pgid=LEADER, sid=LEADER)
JOB = seen(102, pgid=102, sid=LEADER)
DAEMON = seen(103, pgid=103, sid=103, tokens="outer mine")
STRANGER = seen(104, pgid=104, sid=104, tokens="other")
OLD = seen(105, pgid=LEADER, sid=LEADER, start=BORN - 1, tokens="mine")


def test_members_of_group_session_and_token_belong_to_a_held_leader() -> None:
    everyone = [LEADER_SEEN, MEMBER, JOB, DAEMON, STRANGER, OLD]

    assert numbers(belonging(everyone, HELD)) == [101, 102, 103]


def test_processes_of_the_runs_own_user_belong_to_it_except_those_of_root() -> None:
    alone, strange, of_root = (replace(seen(200 + uid, pgid=9, sid=9), uid=uid) for uid in (77, 78, 0))
    everyone = [alone, strange, of_root, MEMBER]

    assert numbers(belonging(everyone, replace(HELD, uid=77))) == [277, 101]
    assert numbers(belonging(everyone, replace(HELD, uid=0))) == [101]
    assert numbers(belonging(everyone, Mark("nobody's", uid=77))) == [277]
    assert (
        numbers(belonging([replace(alone, stat=replace(alone.stat, start_ticks=BORN - 1))], replace(HELD, uid=77)))
        == []
    )


def test_users_are_read_on_request() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as child:
        try:
            found = {users: read_process(child.pid, users=users) for users in (True, False)}
        finally:
            child.kill()
    assert [one.uid if one is not None else None for one in found.values()] == [os.getuid(), 0]


def test_a_leader_that_is_not_held_belongs_to_its_run() -> None:
    assert numbers(belonging([LEADER_SEEN, MEMBER, STRANGER], FOREIGN)) == [100, 101]


def test_a_reused_pid_proves_nothing() -> None:
    reused = seen(LEADER, pgid=LEADER, sid=LEADER, start=BORN + 9)

    assert numbers(belonging([reused, MEMBER, JOB, DAEMON], FOREIGN)) == [103]


def test_another_process_with_the_token_proves_the_session() -> None:
    witness = seen(106, pgid=106, sid=LEADER, tokens="mine")

    assert numbers(belonging([MEMBER, JOB, witness], FOREIGN)) == [101, 102, 106]
    assert belonging([MEMBER, JOB], FOREIGN) == []


def test_a_zombie_leader_proves_the_session() -> None:
    zombie = seen(LEADER, pgid=LEADER, sid=LEADER, state="Z")

    assert numbers(belonging([zombie, MEMBER], FOREIGN)) == [100, 101]


def test_without_a_pid_only_the_token_counts() -> None:
    outside = seen(107, pgid=0, sid=0, tokens="mine")
    neighbour = seen(108, pgid=0, sid=0)

    assert numbers(belonging([outside, neighbour, MEMBER], Mark("mine"))) == [107]


@given(
    st.lists(
        st.builds(
            seen,
            st.integers(90, 110),
            pgid=st.integers(98, 102),
            sid=st.integers(98, 102),
            start=st.integers(BORN - 1, BORN + 1),
            tokens=st.sampled_from(["", "mine", "other", "mine other"]),
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_a_process_without_a_sign_does_not_belong(everyone: list[Seen], held: bool) -> None:
    mark = Mark("mine", LEADER, BORN, held=held)
    for one in belonging(everyone, mark):
        assert one.stat.start_ticks >= BORN
        assert "mine" in one.tokens or LEADER in (one.stat.pgid, one.stat.sid)
        assert not (held and one.stat.pid == LEADER)


@contextmanager
def running(*argv: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a real process that has already written a line."""
    with subprocess.Popen(
        argv, env={"PATH": PATH, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        try:
            yield child
        finally:
            child.kill()


def test_a_scan_sees_a_child_and_its_token_but_not_this_process(tag: str) -> None:
    me = read_stat(os.getpid())
    assert me is not None
    with running("/bin/sh", "-c", "echo ready; read x", env={TAG: tag, MARKER: "outer:mine"}) as child:
        found = {one.stat.pid: one for one in scan(me.start_ticks)}

    assert found[child.pid].tokens == {"outer", "mine"}
    assert (found[child.pid].stat.pgid, found[child.pid].stat.sid) == (child.pid, child.pid)
    assert os.getpid() not in found
    assert 1 not in found  # Process 1 is older than this process.


def test_a_large_environment_is_read_whole(tag: str) -> None:
    padding = {f"PADDING_{number}": "x" * 100_000 for number in range(8)}
    with running("/bin/sh", "-c", "echo ready; read x", env={TAG: tag, **padding, MARKER: "mine"}) as child:
        found = read_process(child.pid)

    assert found is not None
    assert found.tokens == {"mine"}
    assert found.stat.environ_bytes > 800_000


def test_an_empty_environment_is_known_to_be_empty(tag: str) -> None:
    with running("/bin/sh", "-c", "exec env -i /bin/sh -c 'echo ready; read x'", env={TAG: tag}) as child:
        found = read_process(child.pid)

    # The shell sets PWD for itself, but not in the environment that it was given.
    assert found is not None
    assert (found.tokens, found.undecided, found.stat.environ_bytes) == (frozenset(), False, 0)


MAIN_THREAD_ENDS = """
import ctypes, os, sys, threading
def rest():
    while open(f"/proc/self/task/{os.getpid()}/stat").read().rpartition(")")[2].split()[0] != "Z":
        pass
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_main_thread_has_ended_is_read_through_other_threads(tag: str) -> None:
    with running(*python(MAIN_THREAD_ENDS).argv, env={TAG: tag, MARKER: "mine"}) as child:
        found = read_process(child.pid)

    assert found is not None
    assert found.stat.state == "Z"
    assert found.stat.alive
    assert found.tokens == {"mine"}


def test_zombies_and_kernel_threads_are_not_seen(tag: str) -> None:
    child = subprocess.Popen(["/bin/true"], env={TAG: tag, MARKER: "mine"})
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = read_process(child.pid)
    assert zombie is not None
    assert (zombie.stat.alive, zombie.tokens) == (False, frozenset())

    child.wait()

    assert read_process(child.pid) is None
    kernel_thread = read_stat(2)
    if kernel_thread is not None and kernel_thread.kernel_thread:
        assert read_process(2) is None


def test_a_new_process_changes_the_last_pid(tag: str) -> None:
    before = last_pid()
    subprocess.run(["/bin/true"], env={TAG: tag}, check=True)

    assert last_pid() != before


@pytest.mark.parametrize("pid", [2**22 + 1, 999_999_999])
def test_pids_without_a_process_are_not_read(pid: int) -> None:
    assert read_stat(pid) is None
    assert read_process(pid) is None


def young(pid: int) -> Mark:
    """Return the mark of a leader that was started a moment ago and is not reaped (``held``)."""
    return Mark("mine", pid, int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")), held=True)


def test_descendants_of_young_leaders_have_higher_pids() -> None:
    assert highest_unrelated_pid([young(120), young(100)], b"130") == 99


def test_a_leader_that_waited_for_its_work_has_no_earlier_descendants() -> None:
    old = replace(young(100), start_ticks=1, work_number=500, work_ticks=ticks_now())
    assert highest_unrelated_pid([old], b"530") == 500
    assert highest_unrelated_pid([old, young(490)], b"530") == 489


@pytest.mark.parametrize(
    ("marks", "newest_pid"),
    [
        ([young(100), young(120)], b"110"),  # The process ids have wrapped around.
        ([replace(young(100), work_number=500, work_ticks=ticks_now())], b"130"),
        ([replace(young(100), work_number=110, work_ticks=1)], b"130"),
        ([replace(young(100), start_ticks=1)], b"130"),  # An old leader may have descendants with any id.
        ([replace(young(100), held=False)], b"130"),  # Another process may have the id of this leader.
        ([replace(young(100), uid=70000)], b"130"),  # Every process of that user belongs to the run.
        ([young(0)], b"130"),
        ([young(100)], b""),
    ],
)
def test_all_processes_are_scanned_without_proof_of_order(marks: list[Mark], newest_pid: bytes) -> None:
    assert highest_unrelated_pid(marks, newest_pid) == 0


def test_a_scan_above_a_pid_leaves_out_lower_pids() -> None:
    with running("sh", "-c", "echo ready; read _", env={}) as child:
        assert child.pid in numbers(scan(0, above=child.pid - 1))
        assert child.pid not in numbers(scan(0, above=child.pid))
