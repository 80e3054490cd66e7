"""CEL rules in real worker processes: the results of rules, and workers that die, hang or send too much output."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.process.children import is_alive
from tests.scale import scaled
from wharfinger.formats.cel.protocol import Finding, FindingKind
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.validations import KUBERNETES, SchemaRules
from wharfinger.packages.errors import RulesError
from wharfinger.packages.settings import cel_pool
from wharfinger.packages.settings.cel_pool import CelLimits, open_cel_pool
from wharfinger.process.command import Command
from wharfinger.process.ledger import ProcessLedger, open_ledger

PATIENT = CelLimits(seconds=60)
PLACE = f"{KUBERNETES}[0]"
SLOW = "self.map(x, x + 1).size() > 0"
SLOW_VALUE: JsonValue = list(range(2_000))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ProcessLedger]:
    with open_ledger(tmp_path / "journal.db") as ledger:
        yield ledger
        assert ledger.entries() == ()


def rules(*texts: str) -> SchemaRules:
    schema: JsonObject = {KUBERNETES: [{"rule": text} for text in texts]}
    found = compile_schema(schema, what="s").rules
    assert found is not None
    return found


def program(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Replace the program that workers run with the Python text ``text``."""
    monkeypatch.setattr(cel_pool, "_COMMAND", Command((sys.executable, "-I", "-c", text), cwd=Path("/"), env={}))


async def test_rules_are_checked_and_evaluated(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        assert pool.statistics().workers == 0
        assert await pool.check(rules("self > 1")) == ()
        (wrong,) = await pool.check(rules("self >"))
        assert (wrong.kind, wrong.at) == (FindingKind.ERROR, PLACE)
        assert await pool.evaluate(rules("self > 1"), 2) == ()
        (finding,) = await pool.evaluate(rules("self > oldSelf"), 2, 3)
        assert finding == Finding(FindingKind.FAILED, (), PLACE, "failed rule: self > oldSelf")
        assert await pool.evaluate(rules("self > oldSelf"), 2) == ()
        (entry,) = ledger.entries()
        statistics = pool.statistics()
        assert (statistics.workers, statistics.requests, statistics.replaced) == (1, 5, 0)
    assert not is_alive(entry.pid)
    assert pool.statistics().workers == 0


async def test_a_value_that_cannot_be_encoded_is_not_sent_to_a_worker(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, limits=PATIENT) as pool:
        with pytest.raises(ShapeError, match="surrogate"):
            await pool.evaluate(rules("true"), "\ud800")
        assert pool.statistics().requests == 0


async def test_large_values_are_evaluated(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        assert await pool.evaluate(rules("self.size() == 4000000"), "x" * 4_000_000) == ()


@pytest.mark.slow
async def test_rules_that_exceed_the_cpu_limit_are_a_finding(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=CelLimits(cpu_seconds=1, seconds=60)) as pool:
        (finding,) = await pool.evaluate(rules("true", *[SLOW] * 500), SLOW_VALUE)
        assert finding.kind is FindingKind.ERROR
        assert finding.path == ()
        assert finding.at.startswith(KUBERNETES)
        assert finding.at != PLACE
        assert finding.message == (
            "could not be evaluated within 1 s of CPU time, all rules together; make them cheaper"
        )
        assert (pool.statistics().requests, pool.statistics().workers) == (1, 0)
        assert await pool.check(rules("true")) == ()


async def test_the_cpu_limit_is_passed_to_the_worker(ledger: ProcessLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    program(
        monkeypatch,
        """import sys; sys.stdin.readline(); print('{"at":"%s"}' % sys.argv[1:], flush=True); sys.exit(1)""",
    )
    async with open_cel_pool(ledger, workers=1, limits=CelLimits(cpu_seconds=7, seconds=60)) as pool:
        (finding,) = await pool.evaluate(rules("true"), 1)
    assert finding.at == "['7']"


async def test_a_rule_that_exhausts_the_memory_replaces_only_its_worker(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        (finding,) = await pool.evaluate(rules("lists.range(1000000000).size() > 0"), 1)
        assert finding.message == "could not be evaluated: takes too much memory"
        assert await pool.evaluate(rules("self == 1"), 1) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import os; os.kill(os.getpid(), 11)", "its worker died (Segmentation fault)"),
        ("raise SystemExit(7)", "its worker died (exit status 7)"),
        (
            'import sys; sys.stdin.readline(); print(\'{"at":"x"}\'); sys.stdout.flush(); sys.exit(1)',
            "its worker died (exit status 1)",
        ),
        ("print('nonsense', flush=True); import signal; signal.pause()", "cel: not an answer"),
        ("print('x' * 2_000_000, flush=True); import signal; signal.pause()", "an answer of more than"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", "could not be evaluated within 5 s of CPU time"),
    ],
)
async def test_misbehaving_workers_are_reported_as_findings(
    ledger: ProcessLedger, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    program(monkeypatch, text)
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        (finding,) = await pool.evaluate(rules("true"), 1)
        assert finding.kind is FindingKind.ERROR
        assert why in finding.message
        assert finding.at == ("x" if "at" in text and "print('{" in text else "")
        assert pool.statistics().requests == (2 if "died" in why else 1)


@pytest.mark.parametrize(("said", "place"), [("", ""), ('{"at":"x"}', ", at x")])
async def test_a_worker_that_times_out_is_a_transient_error(
    ledger: ProcessLedger, monkeypatch: pytest.MonkeyPatch, said: str, place: str
) -> None:
    """A busy machine is enough to cause a timeout, so a timeout must not be a permanent error of the settings."""
    program(monkeypatch, f"import signal; print({said!r}, end='\\n' if {said!r} else '', flush=True); signal.pause()")
    async with open_cel_pool(ledger, workers=1, limits=CelLimits(seconds=0.5)) as pool:
        with pytest.raises(RulesError) as caught:
            await pool.evaluate(rules("true"), 1)
        assert caught.value.transient
        assert pool.statistics().requests == 1
    # The speed of the machine decides whether the worker had sent something by then.
    assert str(caught.value) in {
        f"the rules could not be evaluated within 0.5 s{at}, though they did not use 5 s of CPU time: the machine is overloaded"
        for at in ("", place)
    }


async def test_a_worker_killed_during_a_request_is_replaced(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        await pool.check(rules("true"))
        (entry,) = ledger.entries()
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                assert await pool.evaluate(rules(*[SLOW] * 2), SLOW_VALUE) == ()

            nursery.start_soon(ask)
            while pool.statistics().requests < 2:
                await trio.lowlevel.checkpoint()
            os.kill(entry.pid, signal.SIGKILL)
        assert pool.statistics().requests == 3
        (after,) = ledger.entries()
        assert after.pid != entry.pid


async def test_an_idle_worker_that_dies_is_replaced_at_the_next_request(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        await pool.check(rules("true"))
        (entry,) = ledger.entries()
        os.kill(entry.pid, signal.SIGKILL)
        while pool.statistics().workers:
            await trio.lowlevel.checkpoint()
        assert await pool.check(rules("true")) == ()


async def test_a_cancelled_request_does_not_disturb_the_next(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        for number in range(scaled(50, 5)):
            with trio.move_on_after(0) as scope:
                await pool.evaluate(rules("self > 5"), number)
            assert scope.cancelled_caught
            (finding,) = await pool.evaluate(rules("self == 1"), number + 100)
            assert finding.message == "failed rule: self == 1"
        assert pool.statistics().workers == 1


async def test_a_request_cancelled_during_evaluation_does_not_replace_the_worker(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.evaluate, rules(SLOW), SLOW_VALUE)
            while pool.statistics().requests < 1:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert await pool.evaluate(rules("self == 1"), 1) == ()
        assert pool.statistics().replaced == 0


async def test_concurrent_requests_share_a_limited_number_of_workers(ledger: ProcessLedger) -> None:
    async with open_cel_pool(ledger, workers=2, limits=PATIENT) as pool:
        async with trio.open_nursery() as nursery:

            async def ask(number: int) -> None:
                (finding,) = await pool.evaluate(rules(f"self != {number}"), number)
                assert finding.message == f"failed rule: self != {number}"

            for number in range(scaled(300, 30)):
                nursery.start_soon(ask, number)
        assert pool.statistics().workers <= 2


async def test_a_worker_that_cannot_be_started_is_an_error(
    ledger: ProcessLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cel_pool, "_COMMAND", Command(("/nowhere/python",), cwd=Path("/"), env={}))
    async with open_cel_pool(ledger, limits=PATIENT) as pool:
        with pytest.raises(RulesError, match="no process for the rules"):
            await pool.check(rules("true"))


async def test_closing_the_pool_fails_all_waiting_requests(ledger: ProcessLedger) -> None:
    told: list[str] = []

    async def ask() -> None:
        with pytest.raises(RulesError, match="shut down") as caught:
            await pool.evaluate(rules(*[SLOW] * 900), SLOW_VALUE)
        assert caught.value.transient
        told.append("told")

    async with trio.open_nursery() as nursery, open_cel_pool(ledger, workers=1, limits=PATIENT) as pool:
        for _ in range(3):
            nursery.start_soon(ask)
        while pool.statistics().requests < 1:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
    assert told == ["told"] * 3
    with pytest.raises(RulesError, match="shut down"):
        await pool.check(rules("true"))
