"""The killing of all processes of a run, with real processes and real limits."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.process.children import PATH, TAG, alive_with, is_alive
from tests.programs import ROOT
from wharfinger.process.descendants import Mark, Seen, read_stat, scan
from wharfinger.process.proc_stat import MARKER
from wharfinger.process.sweep import SweepResult, SweptRun, sweep, sweep_round

LONG = 30.0


@contextmanager
def leader(script: str, tag: str, token: str = "") -> Iterator[tuple[Mark, list[int]]]:
    """Start a child in a new session. The child writes a line of numbers. Yield the child's Mark (with ``held``, because the
    child is not reaped before the end of the block) and the numbers.
    """
    env = {"PATH": PATH, TAG: tag, MARKER: token}
    child = subprocess.Popen(
        ["/bin/sh", "-c", script], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    said = [int(word) for word in child.stdout.readline().split()]
    stat = read_stat(child.pid)
    assert stat is not None
    try:
        yield Mark("token", child.pid, stat.start_ticks, held=True), said
    finally:
        child.kill()
        child.stdout.close()
        child.wait()


def result_of(swept: SweptRun) -> SweepResult | None:
    return swept.result


def wait_zombie(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_sweep_without_processes_kills_nothing() -> None:
    assert sweep([], LONG) == SweepResult(0, 0)
    assert sweep([Mark("nobody has this token")], LONG) == SweepResult(0, 0)


def test_the_group_is_killed_with_its_leader_which_is_not_counted(tag: str) -> None:
    with leader("sleep 1000 & sleep 1000 & echo $!; wait", tag) as (mark, _):
        assert sweep([mark], LONG) == SweepResult(2, 0)
        wait_zombie(mark.pid)


def test_a_held_zombie_is_not_reaped(tag: str) -> None:
    with leader("sleep 1000 >/dev/null & echo $!", tag) as (mark, said):
        wait_zombie(mark.pid)

        assert sweep([mark], LONG) == SweepResult(1, 0)

        assert not is_alive(said[0])
        wait_zombie(mark.pid)


def test_groups_of_job_control_are_killed_with_the_session(tag: str) -> None:
    with leader("exec bash -c 'set -m; sleep 1000 >/dev/null & echo $!'", tag) as (mark, said):
        wait_zombie(mark.pid)
        job = read_stat(said[0])
        assert job is not None
        assert job.pgid != mark.pid

        assert sweep([mark], LONG) == SweepResult(1, 0)


def test_a_daemon_is_found_by_its_token(tag: str) -> None:
    script = "setsid sh -c 'sleep 1000 >/dev/null & echo $$ $!; exec >/dev/null; wait' &"
    with leader(script, tag, "outer:token") as (mark, said):
        wait_zombie(mark.pid)
        assert all(is_alive(pid) for pid in said)

        assert sweep([mark], LONG) == SweepResult(2, 0)


def test_a_stopped_process_is_killed(tag: str) -> None:
    with leader("setsid sh -c 'echo $$; kill -STOP $$' & wait", tag, "token") as (mark, _):
        assert sweep([mark], LONG) == SweepResult(1, 0)
        wait_zombie(mark.pid)


def test_without_a_held_leader_pid_and_start_time_must_agree(tag: str) -> None:
    with leader("env -i sleep 1000 & echo $!; wait", tag) as (mark, said):
        reused = Mark("token", mark.pid, mark.start_ticks - 1)
        assert sweep([reused], LONG) == SweepResult(0, 0)
        assert is_alive(mark.pid)
        assert is_alive(said[0])

        assert sweep([Mark("token", mark.pid, mark.start_ticks)], LONG) == SweepResult(2, 0)


def test_several_runs_are_swept_at_once(tag: str) -> None:
    with (
        leader("sleep 1000 & echo $$; wait", tag, "one") as (first, _),
        leader("sleep 1000 & echo $$; wait", tag, "two") as (second, _),
    ):
        assert sweep([Mark("one"), Mark("two", second.pid, second.start_ticks)], LONG) == SweepResult(4, 0)
        assert not is_alive(first.pid)


@pytest.mark.parametrize("most", [1, 3, 256])
def test_many_runs_are_pinned_in_parts(tag: str, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("wharfinger.process.sweep.PINS_MAX", most)
    with (
        leader("sleep 1000 & sleep 1000 & echo $!; wait", tag) as (first, _),
        leader("sleep 1000 & echo $!; wait", tag) as (second, _),
        leader("sleep 1000 & sleep 1000 & echo $!; wait", tag) as (third, _),
    ):
        assert sweep([first, second, third], LONG) == SweepResult(5, 0)


def test_a_group_is_frozen_before_the_scan(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[int] = []

    def look_and_scan(since_ticks: int, *, users: bool, above: int) -> list[Seen]:
        ended = os.waitid(os.P_PID, mark.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert ended is not None
        states.append(ended.si_code)
        return scan(since_ticks, users=users, above=above)

    monkeypatch.setattr("wharfinger.process.sweep.scan", look_and_scan)
    with leader("echo $$; exec sleep 5", tag) as (mark, _):
        assert sweep([mark], LONG) == SweepResult(0, 0)
    assert states[0] == os.CLD_STOPPED


def test_a_process_that_forks_continuously_is_killed_with_all_children(tag: str) -> None:
    script = "echo $$; i=0; while [ $i -lt 300 ]; do sleep 1000 & setsid sleep 1000 & i=$((i+1)); done; wait"
    with leader(script, tag, "token") as (mark, _):
        assert sweep([mark], LONG).left == 0
        wait_zombie(mark.pid)
        assert alive_with(tag) == []


def test_without_descriptors_the_group_is_killed_and_one_process_is_reported(tag: str) -> None:
    with leader("echo $$; exec sleep 1000", tag) as (mark, _):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            result = sweep([mark], 0.0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        wait_zombie(mark.pid)

    assert result == SweepResult(0, 1)


def test_a_round_without_descriptors_is_not_the_last(tag: str) -> None:
    with leader("setsid sh -c 'echo $$; exec sleep 1000' & wait", tag, "token") as (mark, said):
        swept = SweptRun(mark, LONG)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            sweep_round([swept])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        wait_zombie(mark.pid)
        assert is_alive(said[0])
        assert result_of(swept) is None

        while result_of(swept) is None:
            sweep_round([swept])

        assert result_of(swept) == SweepResult(1, 0)


def test_other_errors_of_a_sweep_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_since_ticks: int, *, users: bool, above: int) -> list[Seen]:
        raise PermissionError(errno.EACCES, "no /proc")

    monkeypatch.setattr("wharfinger.process.sweep.scan", broken)
    with pytest.raises(PermissionError, match="no /proc"):
        sweep([Mark("token")], LONG)


def test_after_the_time_limit_living_processes_are_reported_as_left(tag: str) -> None:
    with leader("sleep 1000 & echo $!; wait", tag) as (mark, _):
        result = sweep([mark], 0.0)
        wait_zombie(mark.pid)

    assert result == SweepResult(0, 1)


NOT_OURS = """
import os, subprocess, sys
from wharfinger.process.descendants import Mark, read_stat
from wharfinger.process.sweep import sweep
with subprocess.Popen(["/bin/sh", "-c", "echo ready; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      start_new_session=True) as other:
    other.stdout.readline()
    stat = read_stat(other.pid)
    os.setresuid(65534, 65534, 65534)
    result = sweep([Mark("token", other.pid, stat.start_ticks)], 30.0)
    print(result.killed, result.left, other.poll())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's process: only root can make one")
def test_a_process_of_another_user_is_reported_as_left(tag: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOT_OURS],
        cwd=ROOT,
        env={"PATH": PATH, TAG: tag},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["0", "1", "None"]


ADOPTING = """
import ctypes, os, subprocess, sys
from wharfinger.process.descendants import Mark, read_stat
from wharfinger.process.sweep import sweep
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
script = "sleep 1000 >/dev/null & setsid sleep 1000 >/dev/null & sleep 0.3 >/dev/null & echo $!"
with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as leader:
    ended_first = int(leader.stdout.readline())
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
    os.waitid(os.P_PID, ended_first, os.WEXITED | os.WNOWAIT)
    result = sweep([Mark("token", leader.pid, read_stat(leader.pid).start_ticks, held=True)], 30.0)
    leader.wait()
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print(result.killed, result.left, "no child left")
"""


def test_a_sweep_leaves_no_zombies_to_a_subreaper(tag: str) -> None:
    env = {"PATH": PATH, TAG: tag, MARKER: "token"}
    done = subprocess.run(
        [sys.executable, "-c", ADOPTING], cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=300
    )

    assert done.stdout.split() == ["2", "0", "no", "child", "left"]
