"""Runs of real children: no process survives, and no limit is exceeded, whatever a child does and whenever it is cancelled.

The fixture ``tag`` checks after each test that no process with the test's tag, no unreaped child and no open descriptor is left.
"""

import random
import resource
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.process.children import PATIENT, SHORT, Lines, alive_with, is_alive, python, shell
from tests.scale import scaled
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits, Sinks
from wharfinger.process.errors import SpawnError
from wharfinger.process.ledger import open_ledger

IGNORES_TERM = "trap '' TERM; echo ready; while :; do sleep 1000; done"
GRANDCHILD_HOLDS_STDOUT = "(trap '' TERM; sleep 1000) & echo ready; exit 0"
DAEMONISED = "setsid sh -c 'trap \"\" TERM HUP; echo ready; exec sleep 1000' & wait"
JOB_CONTROL = "set -m; sleep 1000 & sleep 1000 & echo ready; wait"
WRITES_WITHOUT_END = "echo ready; while :; do echo 0123456789012345678901234567890123456789; done"
COMPLAINS_WITHOUT_END = "echo ready; while :; do echo 0123456789012345678901234567890123456789 >&2; done"
STOPPED = "echo ready; kill -STOP $$"
UNRULY = {
    "ignores SIGTERM": IGNORES_TERM,
    "a grandchild holds stdout": GRANDCHILD_HOLDS_STDOUT,
    "a daemonised grandchild": DAEMONISED,
    "job control": JOB_CONTROL,
    "writes without end": WRITES_WITHOUT_END,
    "complains without end": COMPLAINS_WITHOUT_END,
    "stops itself": STOPPED,
}
REPETITIONS = scaled(200, 20)


async def test_an_outcome_has_status_and_output(tag: str) -> None:
    outcome = await run_child(shell("echo out; echo err >&2; exit 3", tag), PATIENT)
    assert (outcome.ending, outcome.returncode, outcome.stdout, outcome.stderr) == (
        Ending.EXITED,
        3,
        b"out\n",
        b"err\n",
    )
    assert not outcome.ok
    assert outcome.describe() == "exit status 3"
    assert outcome.survivors_killed == 0


async def test_a_signal_is_named(tag: str) -> None:
    outcome = await run_child(shell("kill -SEGV $$", tag), PATIENT)
    assert outcome.returncode == -11
    assert "SIGSEGV" in outcome.describe()


async def test_a_child_has_its_environment_folder_and_session(tag: str, tmp_path: Path) -> None:
    script = "import os; print(os.getcwd(), os.environ['A'], os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid())"
    command = replace(python(script, tag), cwd=tmp_path)
    command = replace(command, env={**command.env, "A": "b"})
    outcome = await run_child(command, PATIENT)
    assert outcome.stdout.decode().split() == [str(tmp_path), "b", "True", "True"]


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
async def test_input_arrives_completely_and_ends(tag: str, size: int) -> None:
    outcome = await run_child(shell("wc -c", tag, stdin=b"x" * size), PATIENT)
    assert outcome.stdout.split() == [str(size).encode()]


async def test_a_child_that_never_reads_its_input_does_not_block_the_run(tag: str) -> None:
    outcome = await run_child(shell("exec sleep 0", tag, stdin=b"x" * 1_000_000), PATIENT)
    assert outcome.ok


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("no-such-program",), "not on PATH"),
        (("/no/such/program",), "no such file"),
        (("/etc/passwd",), "not executable"),
    ],
)
async def test_an_error_names_the_reason_why_a_program_cannot_be_started(
    tag: str, argv: tuple[str, ...], why: str
) -> None:
    with pytest.raises(SpawnError, match=why):
        await run_child(Command(argv, Path("/"), {"PATH": "/usr/bin:/bin"}), PATIENT)


@pytest.mark.parametrize("what", UNRULY)
async def test_the_deadline_ends_all_processes_of_a_run(tag: str, what: str) -> None:
    # If the leader exits, it must do so before the deadline, even on a busy machine. Other leaders never end by themselves.
    exits = what == "a grandchild holds stdout"
    limits = replace(SHORT, wall_s=SHORT.wall_s if exits else 0.05, stdout_bytes=1 << 30)
    for _ in range(scaled(20, 2)):
        outcome = await run_child(shell(UNRULY[what], tag), limits, sinks=Sinks(stdout=lambda _chunk: None))
        if exits:
            assert outcome.ending is Ending.EXITED
            assert outcome.survivors_killed >= 1
        else:
            assert outcome.ending is Ending.DEADLINE
            assert not outcome.ok
        assert alive_with(tag) == []


async def test_a_child_may_clean_up_after_sigterm(tag: str, mock_clock: MockClock) -> None:
    mock_clock.rate = 1
    script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    lines = Lines()

    async def pass_the_deadline() -> None:
        await lines.wait_for("ready")
        mock_clock.jump(PATIENT.wall_s)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_the_deadline)
        outcome = await run_child(shell(script, tag), PATIENT, sinks=Sinks(stdout=lines))
    assert outcome.ending is Ending.DEADLINE
    assert lines.data == b"ready\ncleaned\n"


@pytest.mark.parametrize("limit", [0, 1, 1000, 70_000])
async def test_output_limits_are_not_exceeded(tag: str, limit: int) -> None:
    for _ in range(REPETITIONS):
        outcome = await run_child(shell(WRITES_WITHOUT_END, tag), replace(SHORT, stdout_bytes=limit))
        assert outcome.ending is Ending.OUTPUT_LIMIT
        assert len(outcome.stdout) == limit
    assert alive_with(tag) == []


async def test_a_sink_gets_no_more_than_the_limit(tag: str) -> None:
    lines = Lines()
    outcome = await run_child(
        shell(WRITES_WITHOUT_END, tag), replace(SHORT, stdout_bytes=100_000), sinks=Sinks(stdout=lines)
    )
    assert outcome.ending is Ending.OUTPUT_LIMIT
    assert len(lines.data) == 100_000
    assert outcome.stdout == b""


async def test_the_tail_of_stderr_is_retained(tag: str) -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done >&2; echo last >&2"
    outcome = await run_child(shell(script, tag), replace(PATIENT, stderr_bytes=1000))
    assert outcome.ok
    assert len(outcome.stderr) == 1000
    assert outcome.stderr.endswith(b"line 19999\nlast\n")


@pytest.mark.sampled(3)
@pytest.mark.unmeasured
@pytest.mark.parametrize("what", UNRULY)
async def test_no_process_survives_a_cancellation_at_any_moment(tag: str, what: str) -> None:
    """The cancellation comes at a random moment: immediately, after some turns of the event loop, or after some bytes of
    output.
    """
    draw = random.Random(what)  # noqa: S311 - the same moments in every run
    for _ in range(REPETITIONS):
        turns, size = draw.choice([0, 1, 2, 3, 5, 10, 50, 200, 1000]), draw.choice([1, 6, 1000, 100_000, 1 << 40])
        got = 0
        with trio.CancelScope() as scope:

            def count(chunk: bytes, scope: trio.CancelScope = scope, size: int = size) -> None:
                nonlocal got
                got += len(chunk)
                if got >= size:
                    scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_after, turns, nursery.cancel_scope)
                await run_child(shell(UNRULY[what], tag), SHORT, sinks=Sinks(stdout=count))
                nursery.cancel_scope.cancel()
        assert got <= SHORT.stdout_bytes
        assert alive_with(tag) == []


async def _cancel_after(turns: int, scope: trio.CancelScope) -> None:
    for _ in range(turns):
        await trio.lowlevel.checkpoint()
    scope.cancel()


async def test_a_second_cancellation_waits_for_the_death_of_the_child(tag: str) -> None:
    """Two scopes are cancelled one after the other. The child is dead before either cancellation is raised."""
    lines = Lines()
    with trio.CancelScope() as outer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run, shell(IGNORES_TERM, tag), replace(PATIENT, term_grace_s=0.2), lines)
            await lines.wait_for("ready")
            nursery.cancel_scope.cancel()
            await trio.lowlevel.cancel_shielded_checkpoint()
            outer.cancel()
    assert alive_with(tag) == []


@pytest.mark.parametrize("cause", ["deadline", "output"])
async def test_cancelling_shortens_a_grace_period_in_progress(tag: str, cause: str, mock_clock: MockClock) -> None:
    """Without the cancellation, a child that has passed its deadline or output limit would have 1000 s to clean up."""
    mock_clock.rate = 1
    limits = replace(PATIENT, term_grace_s=1000.0, cancel_grace_s=0.05)
    limits = limits if cause == "deadline" else replace(limits, stdout_bytes=10)
    script = "trap 'echo asked to go >&2' TERM; echo more than ten bytes; while :; do sleep 0.01; done"
    output, lines = Lines(), Lines()
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_child(shell(script, tag), limits, sinks=Sinks(stdout=output, stderr=lines))

        nursery.start_soon(run)
        await output.wait_for("more than")  # From this output on, the script traps the signal.
        if cause == "deadline":
            mock_clock.jump(limits.wall_s)
        await lines.wait_for("asked to go")
        nursery.cancel_scope.cancel()
    assert alive_with(tag) == []


async def test_a_cancellation_after_the_end_of_the_leader_needs_no_grace(tag: str) -> None:
    lines = Lines()
    alone = 'until grep -q "^State:.Z" /proc/$$/status; do sleep 0.01; done; echo alone'
    script = f"(trap '' TERM; {alone}; exec sleep 1000) & exit 0"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_run, shell(script, tag), replace(PATIENT, drain_s=1000.0), lines)
        await lines.wait_for("alone")
        nursery.cancel_scope.cancel()
    assert alive_with(tag) == []


async def _run(command: Command, limits: Limits, lines: Lines) -> None:
    await run_child(command, limits, sinks=Sinks(stdout=lines))


async def test_a_sink_that_fails_ends_the_child(tag: str) -> None:
    def broken(_chunk: bytes) -> None:
        raise ValueError("sink")

    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        await run_child(shell(IGNORES_TERM, tag), SHORT, sinks=Sinks(stdout=broken))
    assert alive_with(tag) == []


async def test_many_children_of_one_run_end_together(tag: str) -> None:
    script = "for i in 1 2 3 4 5; do for j in 1 2 3 4 5 6; do (setsid sleep 1000 &) ; done; done; echo ready; exit 0"
    outcome = await run_child(shell(script, tag), replace(SHORT, drain_s=0.2))
    assert outcome.ok
    assert outcome.survivors_killed >= 30
    assert alive_with(tag) == []


async def test_a_hundred_children_run_at_once(tag: str) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(run_child, shell("exit 0", tag), PATIENT)


async def test_usage_counts_only_the_child(tag: str) -> None:
    """A busy and an idle child run at the same time. Their CPU times differ, however long the test takes."""
    usage: dict[str, float] = {}

    async def measured(name: str, command: Command) -> None:
        outcome = await run_child(command, PATIENT)
        usage[name] = outcome.usage.user_s + outcome.usage.system_s

    async with trio.open_nursery() as nursery:
        nursery.start_soon(measured, "busy", python("import time\nwhile time.process_time() < 0.5: pass", tag))
        nursery.start_soon(measured, "light", shell("exit 0", tag))  # Starting Python could be too expensive.
    assert usage["busy"] >= 0.5
    assert usage["light"] < 0.25


async def test_memory_is_in_bytes(tag: str) -> None:
    outcome = await run_child(python("x = bytearray(64 << 20)", tag), PATIENT)
    # On Linux, the maximum memory of a process is at first that of the process that has started it.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 64 << 20 <= outcome.usage.max_rss_bytes < max(1 << 30, 2 * own)


async def test_nothing_is_left_open_or_unreaped_after_many_runs(tag: str) -> None:
    for _ in range(scaled(200, 40)):
        await run_child(shell("echo hello", tag), PATIENT)


async def test_the_ledger_has_a_child_only_while_it_lives(tag: str, tmp_path: Path) -> None:
    lines = Lines()
    with open_ledger(tmp_path / "journal.db") as ledger:
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                await run_child(shell(IGNORES_TERM, tag), SHORT, sinks=Sinks(stdout=lines), ledger=ledger)

            nursery.start_soon(run)
            await lines.wait_for("ready")
            (entry,) = ledger.entries()
            assert is_alive(entry.pid)
            nursery.cancel_scope.cancel()
        assert ledger.entries() == ()
        with pytest.raises(SpawnError):
            await run_child(Command(("no-such-program",), Path("/"), {}), PATIENT, ledger=ledger)
        assert ledger.entries() == ()


async def test_the_end_of_the_spawning_thread_does_not_end_the_child(tag: str) -> None:
    """The thread that starts the child ends long before the child. If the child had a parent-death signal, it would die then."""
    lines = Lines()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_run, shell("echo ready; sleep 1000", tag), SHORT, lines)
        await lines.wait_for("ready")
        for _ in range(200):  # Meanwhile the worker threads do other work.
            await trio.to_thread.run_sync(resource.getrusage, resource.RUSAGE_SELF)
        assert len(alive_with(tag)) >= 1
        nursery.cancel_scope.cancel()
