"""A program that serves runs: how it starts, and until when it is usable."""

from pathlib import Path

import pytest
import trio

from tests.pools.persistent.programs import LIMITS, opened, run_of, serving
from tests.process.children import is_alive
from wharfinger.pools.persistent.program import VALUE, VARIABLE, NotBegunError, Program
from wharfinger.process.command import NO_SINKS


async def test_a_persistent_program_has_the_variable_and_an_input(tmp_path: Path) -> None:
    program = Program(serving(tmp_path), LIMITS)
    async with trio.open_nursery() as nursery:
        await nursery.start(program.live, None)
        do = f"import stat; print(os.environ['{VARIABLE}'], stat.S_ISFIFO(os.fstat(0).st_mode), file=sys.stderr, flush=True)"
        outcome = await program.run({"DO": do}, LIMITS, NO_SINKS)
        assert outcome.stderr.split()[2:] == [VALUE.encode(), b"True"]
        assert is_alive(program.pid)
        program.end()
        await program.over.wait()
        assert not is_alive(program.pid)
    usable: bool = program.usable
    assert not usable


async def test_a_program_ends_with_its_task(tmp_path: Path) -> None:
    program = Program(serving(tmp_path), LIMITS)
    async with trio.open_nursery() as nursery:
        await nursery.start(program.live, None)
        nursery.cancel_scope.cancel()
    assert program.over.is_set()
    assert not is_alive(program.pid)


async def test_a_run_whose_line_was_not_read_has_not_begun(tmp_path: Path) -> None:
    """The program ends without reading the line, so the run has not begun and another process may execute it."""
    once = (
        'import os, time\nos.read(0, 10_000)\nos.write(1, b\'{"run": 1, "status": 0}\\n\')\n'
        "while not os.path.exists('go'): time.sleep(0.001)"
    )
    program = Program(serving(tmp_path, once), LIMITS)
    async with trio.open_nursery() as nursery:
        await nursery.start(program.live, None)
        assert (await program.run({"DO": "pass"}, LIMITS, NO_SINKS)).ok
        (tmp_path / "go").touch()
        with pytest.raises(NotBegunError):
            await program.run({"DO": "pass"}, LIMITS, NO_SINKS)
        assert program.over.is_set()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("end", ["pass", "os.close(0); time.sleep(0.3)"])
async def test_a_program_that_reads_no_run_at_all_has_failed_and_is_not_tried_again(tmp_path: Path, end: str) -> None:
    """A persistent hook that reads no run may have done work nevertheless, so the run must not be repeated."""
    program = serving(tmp_path, f"import os, time\nos.write(2, b'worked ')\n{end}")
    async with opened() as programs:
        outcome = await programs.run(run_of(program), LIMITS)
        assert not outcome.ok or outcome.stderr.startswith(b"worked ")
        assert b"the program ended" in outcome.stderr
        assert outcome.stderr.count(b"worked") == 1
        assert (programs.counters.started, programs.counters.alone) == (1, 0)
