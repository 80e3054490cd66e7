"""Persistent programs: which program serves a run, when programs end, and failures that affect only one run."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.pools.interpreters.warm import descriptors, until
from tests.pools.persistent.programs import LIMITS, SERVE, opened, run_of, serving
from tests.process.children import is_alive
from wharfinger.pools.persistent import programs as module
from wharfinger.process.command import Ending, Outcome, Sinks
from wharfinger.process.errors import SpawnError
from wharfinger.process.ledger import ProcessLedger, open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ProcessLedger]:
    with open_ledger(tmp_path / "journal") as opened:
        yield opened


def words(outcome: Outcome) -> tuple[int, int]:
    """Return the process id of a run, and the number of the run in that process."""
    pid, number = outcome.stderr.split()[:2]
    return int(pid), int(number)


async def test_one_process_serves_one_run_after_another(tmp_path: Path, ledger: ProcessLedger) -> None:
    command = serving(tmp_path)
    before = descriptors()
    async with opened(ledger) as programs:
        first = await programs.run(run_of(command), LIMITS)
        second = await programs.run(run_of(command), LIMITS)
        assert first.ok
        assert second.ok
        pid, number = words(second)
        assert (pid, number) == (words(first)[0], 2)
        assert (len(programs), programs.counters.runs, programs.counters.started) == (1, 2, 1)
        assert len(ledger.entries()) == 1
    assert not is_alive(pid)
    assert ledger.entries() == ()
    assert descriptors() == before


async def test_an_answer_has_a_status_and_a_message(tmp_path: Path) -> None:
    command = serving(tmp_path)
    async with opened() as programs:
        failed = await programs.run(run_of(command, "answer(number, 3, message='no such volume')"), LIMITS)
        assert (failed.ok, failed.describe(), failed.ending) == (False, "exit status 3", Ending.EXITED)
        assert failed.stderr.endswith(b"no such volume\n")
        later = await programs.run(run_of(command), LIMITS)
        assert words(later) == (words(failed)[0], 2)
        assert b"no such volume" not in later.stderr


WRONG = {
    "no JSON": ("print('hello', flush=True)", "print everything else to stderr"),
    "another run": ("answer(number + 1)", "found the run 2"),
    "no status": ("print(json.dumps({'run': number}), flush=True)", "found the status None"),
    "a line without end": ("sys.stdout.write('x' * 70_000); sys.stdout.flush(); time.sleep(1000)", "longer than"),
    "an exit with 0": ("sys.exit(0)", "ended before it answered"),
    "an exit": ("sys.exit(3)", "ended before it answered"),
    "half an answer": ("sys.stdout.write('{'); sys.stdout.flush(); os._exit(1)", "ended in the middle of its answer"),
    "closed stdout": ("os.close(1); time.sleep(1000)", "ended before it answered"),
    "a crash": ("os.kill(os.getpid(), 11)", "ended before it answered"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", WRONG)
async def test_a_wrong_answer_ends_the_process_and_fails_only_its_run(kind: str, tmp_path: Path) -> None:
    do, why = WRONG[kind]
    command = serving(tmp_path)
    async with opened() as programs:
        wrong = await programs.run(run_of(command, do), LIMITS)
        assert not wrong.ok
        assert wrong.ending is Ending.EXITED
        assert why in wrong.stderr.decode()
        pid, _ = words(wrong)
        assert not is_alive(pid)
        assert programs.counters.broken == 1
        right = await programs.run(run_of(command), LIMITS)
        assert right.ok
        assert words(right)[0] != pid
        assert words(right)[1] == 1


async def test_the_exit_status_of_a_process_that_ends_is_reported(tmp_path: Path) -> None:
    command = serving(tmp_path)
    async with opened() as programs:
        assert (await programs.run(run_of(command, "sys.exit(3)"), LIMITS)).describe() == "exit status 3"
        assert (await programs.run(run_of(command, "os.kill(os.getpid(), 11)"), LIMITS)).describe() == (
            "killed by SIGSEGV"
        )


async def test_a_deadline_ends_the_process_with_all_that_it_has_started(tmp_path: Path) -> None:
    command = serving(tmp_path)
    below = tmp_path / "below"
    do = (
        "import subprocess; started = subprocess.Popen(['sleep', '1000'])\n"
        f"with open('{below}.new', 'w') as file: file.write(str(started.pid))\n"
        f"os.rename('{below}.new', '{below}'); time.sleep(1000)"
    )
    async with opened() as programs:
        for wall_s in (0.5, 2.0, 8.0, 32.0):  # On a busy machine, it takes longer until the run has started a process.
            pid, _ = words(await programs.run(run_of(command), LIMITS))
            outcome = await programs.run(run_of(command, do), replace(LIMITS, wall_s=wall_s))
            assert (outcome.ending, outcome.ok) == (Ending.DEADLINE, False)
            assert not is_alive(pid)
            if below.exists():
                break
        await until(lambda: not is_alive(int(below.read_text())))
        assert (await programs.run(run_of(command), LIMITS)).ok


async def test_a_cancelled_run_leaves_no_process(tmp_path: Path, ledger: ProcessLedger) -> None:
    command = serving(tmp_path)
    said: list[bytes] = []
    begun = trio.Event()

    def hear(chunk: bytes) -> None:
        said.append(chunk)
        begun.set()

    async with opened(ledger) as programs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                lambda: programs.run(run_of(command, "time.sleep(1000)"), LIMITS, sinks=Sinks(stderr=hear))
            )
            await begun.wait()
            nursery.cancel_scope.cancel()
        assert not is_alive(int(said[0].split()[0]))
        await until(lambda: not len(programs))
        assert ledger.entries() == ()


async def test_a_process_that_ends_while_it_is_idle_is_replaced_and_no_run_fails(tmp_path: Path) -> None:
    command = serving(tmp_path)
    async with opened() as programs:
        for number in range(4):
            pid, _ = words(await programs.run(run_of(command), LIMITS))
            os.kill(pid, signal.SIGKILL)
            if number % 2:  # At this moment only the kernel knows that the process has ended.
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it was killed
            else:
                await until(lambda: not len(programs))
        assert programs.counters.runs == 4
        assert programs.counters.started == 4


AT_ONCE = r"""
sys.stdout.write(json.dumps({"run": number, "status": 0}) + "\nmore\n")
sys.stdout.flush(); answered.add(number)
"""
LATER = """
answer(number); print("more", flush=True)
open("printed", "w").close()
"""


@pytest.mark.parametrize("do", [AT_ONCE, LATER], ids=["at once", "later"])
async def test_unexpected_output_ends_the_process_but_fails_no_run(do: str, tmp_path: Path) -> None:
    command = serving(tmp_path)
    async with opened() as programs:
        first = await programs.run(run_of(command, do), LIMITS)
        assert first.ok
        await until(lambda: do is AT_ONCE or (tmp_path / "printed").exists())
        # The next run uses another process, and does not take this answer for its own.
        second = await programs.run(run_of(command, "answer(number)"), LIMITS)
        assert second.ok
        assert words(second)[0] != words(first)[0]
    assert programs.counters.runs == 2


async def test_concurrent_runs_have_processes_of_their_own(tmp_path: Path) -> None:
    command = serving(tmp_path)
    found: list[int] = []
    async with opened() as programs:
        begun = [trio.Event(), trio.Event()]
        do = "while not os.path.exists('go'): time.sleep(0.001)"

        async def run(number: int) -> None:
            outcome = await programs.run(run_of(command, do), LIMITS, sinks=Sinks(stderr=lambda _: begun[number].set()))
            found.append(words(outcome)[0])

        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(run, number)
            for event in begun:
                await event.wait()
            (tmp_path / "go").touch()
        assert len(set(found)) == 2
        assert len(programs) == 2


async def test_at_the_limit_an_idle_process_of_another_hook_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PROGRAMS", 2)
    command = serving(tmp_path)
    async with opened() as programs:
        oldest = words(await programs.run(run_of(command, owner="a"), LIMITS))[0]
        kept = words(await programs.run(run_of(command, owner="b"), LIMITS))[0]
        assert (await programs.run(run_of(command, owner="c"), LIMITS)).ok
        await until(lambda: not is_alive(oldest))
        assert is_alive(kept)
        assert words(await programs.run(run_of(command, owner="b"), LIMITS)) == (kept, 2)


async def test_a_run_gets_its_own_process_if_all_processes_are_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PROGRAMS", 1)
    both = (
        "import os, sys\nif 'WHARFINGER_POOL' not in os.environ:\n"
        "    print('alone', os.environ['DO'], file=sys.stderr)\n    sys.exit(4)\n"
    )
    command = serving(tmp_path, both + SERVE)
    begun = trio.Event()
    async with opened() as programs, trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: programs.run(run_of(command, "time.sleep(1000)"), LIMITS, sinks=Sinks(stderr=lambda _: begun.set()))
        )
        await begun.wait()
        outcome = await programs.run(run_of(command, "x"), LIMITS)
        assert (outcome.returncode, outcome.stderr, programs.counters.alone) == (4, b"alone x\n", 1)
        nursery.cancel_scope.cancel()


async def test_another_version_of_a_hook_ends_the_process_of_the_old_one(tmp_path: Path) -> None:
    command = serving(tmp_path)
    async with opened() as programs:
        old = words(await programs.run(run_of(command), LIMITS))[0]
        same = words(await programs.run(run_of(command), LIMITS))[0]
        assert same == old
        newer = serving(tmp_path, "VERSION = 2\n" + SERVE, name="next")
        Path(newer.argv[0]).replace(command.argv[0])
        changed = words(await programs.run(run_of(command), LIMITS))[0]
        assert changed != old
        await until(lambda: not is_alive(old))
        other = replace(command, env={**command.env, "SETTING": "new"})
        last = words(await programs.run(run_of(other), LIMITS))[0]
        assert last != changed
        await until(lambda: not is_alive(changed))
        assert len(programs) == 1


async def test_a_process_ends_after_the_maximum_number_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 3)
    command = serving(tmp_path)
    async with opened() as programs:
        numbers = [words(await programs.run(run_of(command), LIMITS))[1] for _ in range(7)]
        assert numbers == [1, 2, 3, 1, 2, 3, 1]


async def test_an_idle_process_ends_after_the_idle_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_S", 0.01)
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    command = serving(tmp_path)
    async with opened() as programs:
        pid, _ = words(await programs.run(run_of(command), LIMITS))
        await until(lambda: not len(programs))
        assert not is_alive(pid)
        assert (await programs.run(run_of(command), LIMITS)).ok


async def test_usage_is_that_of_one_run(tmp_path: Path) -> None:
    command = serving(tmp_path)
    busy = "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nbytearray(60_000_000)"
    async with opened() as programs:
        much = await programs.run(run_of(command, busy), LIMITS)
        little = await programs.run(run_of(command), LIMITS)
        died = await programs.run(run_of(command, busy + "\nos._exit(1)"), LIMITS)
    assert 0.25 < much.usage.user_s + much.usage.system_s < 2.0
    assert little.usage.user_s + little.usage.system_s < 0.2
    assert 0.25 < died.usage.user_s + died.usage.system_s < 2.0
    assert much.usage.max_rss_bytes > 60_000_000 > little.usage.max_rss_bytes > 1_000_000


async def test_a_run_ends_after_all_its_output_and_gets_no_output_of_others(tmp_path: Path) -> None:
    command = serving(tmp_path)
    async with opened() as programs:
        for number in range(5):
            said: list[bytes] = []
            do = f"sys.stderr.write('{number}' * 200_000); sys.stderr.flush()"
            assert (await programs.run(run_of(command, do), LIMITS, sinks=Sinks(stderr=said.append))).ok
            _, text = b"".join(said).split(b"\n", 1)
            assert text == str(number).encode() * 200_000


async def test_an_error_of_a_sink_is_raised_and_the_process_continues(tmp_path: Path) -> None:
    command = serving(tmp_path)

    def fail(_: bytes) -> None:
        raise ZeroDivisionError

    async with opened() as programs:
        first = words(await programs.run(run_of(command), LIMITS))[0]
        with pytest.raises(ZeroDivisionError):
            await programs.run(run_of(command), LIMITS, sinks=Sinks(stderr=fail))
        assert words(await programs.run(run_of(command), LIMITS)) == (first, 3)


async def test_limits_of_the_kernel_hold_for_the_process(tmp_path: Path) -> None:
    command = serving(tmp_path)
    do = "import resource; print(resource.getrlimit(resource.RLIMIT_AS)[0], file=sys.stderr, flush=True)"
    async with opened() as programs:
        outcome = await programs.run(run_of(command, do), replace(LIMITS, memory_bytes=10**9))
    assert outcome.stderr.split()[-1] == b"1000000000"


async def test_a_program_that_cannot_be_started_has_the_usual_error_and_a_failed_preparation_starts_nothing(
    tmp_path: Path,
) -> None:
    command = serving(tmp_path)

    def fail() -> None:
        raise ZeroDivisionError

    async with opened() as programs:
        with pytest.raises(ZeroDivisionError):
            await programs.run(run_of(command), LIMITS, prepare=fail)
        Path(command.argv[0]).unlink()
        with pytest.raises(SpawnError, match="no such file"):
            await programs.run(run_of(command), LIMITS)
        assert (len(programs), programs.counters.started) == (0, 0)
        serving(tmp_path)
        assert (await programs.run(run_of(command), LIMITS)).ok


async def test_each_run_has_its_own_process_if_the_budget_is_full(tmp_path: Path) -> None:
    command = serving(tmp_path, "import sys\nprint('alone', file=sys.stderr)")
    async with opened(limit=1) as programs:
        outcome = await programs.run(run_of(command), LIMITS)
        assert (outcome.ok, outcome.stderr, len(programs), programs.counters.alone) == (True, b"alone\n", 0, 1)


@pytest.mark.slow
async def test_many_runs_of_all_kinds_leave_no_process_descriptor_or_row(tmp_path: Path, ledger: ProcessLedger) -> None:
    """Hooks run concurrently. Some of them fail, break the protocol, hang and are cancelled, are killed, or leave a child
    behind.
    """
    command = serving(tmp_path)
    kinds = {
        "good": "pass",
        "failed": "answer(number, 1)",
        "broken": "print('?', flush=True)",
        "dead": "os.kill(os.getpid(), 9)",
        "forking": "import subprocess; subprocess.Popen(['sleep', '1000'])",
        "hanging": "time.sleep(1000)",
    }
    before = descriptors()
    ended: list[tuple[str, bool]] = []
    async with opened(ledger) as programs:

        async def run(kind: str) -> None:
            with trio.move_on_after(0.2 if kind == "hanging" else 60.0):
                outcome = await programs.run(run_of(command, kinds[kind], owner=kind), LIMITS)
                ended.append((kind, outcome.ok))

        for _ in range(6):
            async with trio.open_nursery() as nursery:
                for kind in kinds:
                    nursery.start_soon(run, kind)
        assert set(ended) == {("good", True), ("failed", False), ("broken", False), ("dead", False), ("forking", True)}
        assert len(ended) == 30
        assert {process.pid for process in programs.idle_processes()} == children()
        assert len(ledger.entries()) == len(programs) == 3
    assert children() == set()
    assert ledger.entries() == ()
    assert descriptors() == before


def children() -> set[int]:
    """Return the children of this process, including zombies."""
    found = (task.joinpath("children").read_text().split() for task in Path("/proc/self/task").iterdir())
    return {int(pid) for pids in found for pid in pids}
