"""Filters in real worker processes: their answers, and the end of misbehaving workers."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.hooks.support.patience import PATIENT_FILTERS
from tests.process.children import is_alive
from tests.scale import scaled
from wharfinger.formats.jq.protocol import JqAnswer, JqResults, JqText
from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.watching import jq_pool
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.hooks.watching.jq_pool import JqLimits, JqPool, OwnedFilters, open_jq_pool
from wharfinger.hooks.watching.slow_programs import LATE_IN_A_ROW
from wharfinger.process.command import Command
from wharfinger.process.ledger import ProcessLedger, open_ledger

ENDLESS = "last(repeat(1))"
EATS_MEMORY = 'reduce range(40) as $i ("0123456789"; . + .) | length'


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ProcessLedger]:
    with open_ledger(tmp_path / "journal.db") as ledger:
        yield ledger
        assert ledger.entries() == ()


@asynccontextmanager
async def one_worker(ledger: ProcessLedger) -> AsyncIterator[JqPool]:
    async with open_jq_pool(ledger, workers=1, limits=PATIENT_FILTERS) as pool:
        yield pool


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("program", "value", "result"),
    [
        (".a", {"a": 1}, 1),
        ("empty", {}, None),
        (".missing", {}, None),
        (".[]", [1, 2], [1, 2]),
        (".[]", [[1]], [1]),
        (
            ".",
            {"big": 9007199254740993, "x": 1.5, "s": "\u00e9\0"},
            {"big": 9007199254740993, "x": 1.5, "s": "\u00e9\0"},
        ),
        ("[.[]]", {"b": 2, "a": 1}, [1, 2]),
    ],
)
async def test_filters_return_their_results(
    ledger: ProcessLedger, program: str, value: JsonValue, result: JsonValue
) -> None:
    async with one_worker(ledger) as pool:
        assert await pool.apply(program, value) == result


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("program", "text", "result"),
    [
        (".a", b'{"a": 1}', b"1"),
        ("empty", b"{}", b"null"),
        (".[]", b"[1, 2]", b"[1,2]"),
        (".[]", b"[[1]]", b"[1]"),
        (".[]", b'{"b": 2, "a": 1}', b"[1,2]"),
        (
            ".",
            b'{ "b":{"d":1.0,"c":[9007199254740993, 1e3]}, "a":"\\u00e9"}',
            b'{"a":"\xc3\xa9","b":{"c":[9007199254740993,1000],"d":1}}',
        ),
        ("nan, 3.0", b"null", b"[null,3]"),
    ],
)
async def test_text_filters_return_text(ledger: ProcessLedger, program: str, text: bytes, result: bytes) -> None:
    async with one_worker(ledger) as pool:
        assert await pool.apply_text(program, text) == result
        assert await pool.of("web").apply_text(program, text) == result


async def test_failed_text_filter_does_not_replace_its_worker(ledger: ProcessLedger) -> None:
    deep = b"[" * 300 + b"]" * 300
    async with open_jq_pool(ledger, workers=1, limits=replace(PATIENT_FILTERS, input_bytes=1000)) as pool:
        for program, text, why in (
            (".a.b", b'{"a":"x"}', "Cannot index string with string"),
            (".", b'{"a":', "is not JSON: Input data was truncated"),
            (".", b'"\xff"', "is not JSON"),
            (".", deep, "nested deeper"),
            ("reduce range(300) as $i (.; [.])", b"1", "nested deeper"),
            (".", b" " * 1001, "1001 bytes, the limit is 1000"),
        ):
            with pytest.raises(FilterError, match=why) as caught:
                await pool.apply_text(program, text)
            assert not caught.value.transient
        assert pool.statistics().replaced == 0


@pytest.mark.parametrize(("asked", "said"), [("apply", JqText(b"1")), ("apply_text", JqResults((1,)))])
async def test_an_answer_of_an_unexpected_kind_is_refused(
    monkeypatch: pytest.MonkeyPatch, ledger: ProcessLedger, asked: str, said: JqAnswer
) -> None:
    monkeypatch.setattr(jq_pool, "decode_answer", lambda _payload: said)
    async with one_worker(ledger) as pool:
        with pytest.raises(FilterError, match="an answer of an unexpected kind"):
            await (pool.apply(".", 1) if asked == "apply" else pool.apply_text(".", b"1"))


async def test_worker_is_started_at_first_use_and_reused(ledger: ProcessLedger) -> None:
    async with one_worker(ledger) as pool:
        assert pool.statistics().workers == 0
        for number in range(20):
            assert await pool.apply(". + 1", number) == number + 1
        (entry,) = ledger.entries()
        statistics = pool.statistics()
        assert (statistics.workers, statistics.requests, statistics.replaced) == (1, 20, 0)
    assert not is_alive(entry.pid)
    assert pool.statistics().workers == 0


async def test_check_compiles_a_program_without_running_it(ledger: ProcessLedger) -> None:
    async with one_worker(ledger) as pool:
        await pool.check("error")
        for program in ("", ".a |", "nothing"):
            with pytest.raises(FilterError, match="jq: ") as caught:
                await pool.check(program)
            assert not caught.value.transient


async def test_runtime_error_of_a_filter_is_permanent_and_spares_the_worker(ledger: ProcessLedger) -> None:
    async with one_worker(ledger) as pool:
        for program, why in (
            (".a.b", "Cannot index"),
            ('1, error("x")', "the program failed on this object"),
            ("reduce range(300) as $i (.; [.])", "nested"),
        ):
            with pytest.raises(FilterError, match=why) as caught:
                await pool.apply(program, {"a": "x"})
            assert not caught.value.transient
        assert pool.statistics().replaced == 0


@pytest.mark.parametrize(
    ("program", "value", "why"),
    [
        (".", float("nan"), "no JSON form"),
        (".", "\ud800", "no JSON form"),
        (".", "x" * 1000, "the value has 1002 bytes, the limit is 1000"),
        ("1" * 101, None, "longer than 100 characters"),
        ("\ud800", None, "surrogate"),
    ],
)
async def test_invalid_programs_and_inputs_are_refused_without_a_request(
    ledger: ProcessLedger, program: str, value: JsonValue, why: str
) -> None:
    async with open_jq_pool(ledger, limits=JqLimits(input_bytes=1000, program_characters=100)) as pool:
        with pytest.raises(FilterError, match=why):
            await pool.apply(program, value)
        assert pool.statistics().requests == 0


@pytest.mark.slow
async def test_worker_that_exceeds_its_time_limit_is_ended(ledger: ProcessLedger) -> None:
    async with open_jq_pool(ledger, workers=1, limits=JqLimits(seconds=2)) as pool:
        with pytest.raises(FilterError, match="longer than 2 s") as caught:
            await pool.apply(ENDLESS, None)
        assert (caught.value.transient, caught.value.late) == (True, True)
    assert pool.statistics().replaced == 1


async def test_worker_with_an_oversized_answer_is_ended(ledger: ProcessLedger) -> None:
    async with open_jq_pool(ledger, workers=1, limits=replace(PATIENT_FILTERS, answer_bytes=1000)) as pool:
        assert await pool.apply('"x" * 900', None) == "x" * 900
        with pytest.raises(FilterError, match="answer is too large") as caught:
            await pool.apply('"x" * 2000', None)
        assert not caught.value.transient
        assert await pool.apply("1", None) == 1
        assert pool.statistics().replaced == 1


@pytest.mark.slow
async def test_worker_refuses_to_send_oversized_results(ledger: ProcessLedger) -> None:
    async with one_worker(ledger) as pool:
        with pytest.raises(FilterError, match="bytes of results"):
            await pool.apply('"x" * 20000000', None)
        assert pool.statistics().replaced == 0


@pytest.mark.slow
async def test_crash_of_a_worker_does_not_affect_another(ledger: ProcessLedger) -> None:
    async with open_jq_pool(ledger, workers=2, limits=PATIENT_FILTERS) as pool, trio.open_nursery() as nursery:
        results: list[JsonValue] = []

        async def crash() -> None:
            with pytest.raises(FilterError, match="its worker died") as caught:
                await pool.apply(EATS_MEMORY, None)
            assert caught.value.transient

        async def count() -> None:
            results.extend([await pool.apply(".", number) for number in range(20)])

        nursery.start_soon(crash)
        nursery.start_soon(count)
    assert results == list(range(20))


async def test_idle_worker_that_dies_is_replaced_without_an_error(ledger: ProcessLedger) -> None:
    async with one_worker(ledger) as pool:
        await pool.apply(".", 1)
        (entry,) = ledger.entries()
        os.kill(entry.pid, signal.SIGKILL)
        while pool.statistics().workers:
            await trio.lowlevel.checkpoint()
        assert await pool.apply(".", 2) == 2
        assert pool.statistics().replaced == 1


async def test_concurrent_requests_get_their_own_answers(ledger: ProcessLedger) -> None:
    async with open_jq_pool(ledger, workers=2, limits=PATIENT_FILTERS) as pool:

        async def ask(number: int) -> None:
            assert await pool.apply('{n: ., s: "x" * (. * 100 + 1) | length}', number) == {
                "n": number,
                "s": number * 100 + 1,
            }

        async with trio.open_nursery() as nursery:
            for number in range(scaled(500, 60)):
                nursery.start_soon(ask, number)
        assert pool.statistics().workers == 2


@pytest.mark.slow
async def test_request_after_a_cancelled_one_gets_its_own_answer(ledger: ProcessLedger) -> None:
    async with one_worker(ledger) as pool:
        for turns in range(scaled(200, 60)):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pool.apply, '"old" * 100000', None)
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            assert await pool.apply(".", turns) == turns
        assert pool.statistics().replaced == 0


async def test_waiting_requests_fail_when_the_pool_closes(ledger: ProcessLedger) -> None:
    async with trio.open_nursery() as nursery:

        async def wait(pool: JqPool, program: str) -> None:
            with pytest.raises(FilterError, match="shut down") as caught:
                await pool.apply(program, None)
            assert caught.value.transient

        async with one_worker(ledger) as pool:
            nursery.start_soon(wait, pool, ENDLESS)
            nursery.start_soon(wait, pool, ENDLESS)  # This request waits for a slot.
            while not pool.statistics().requests:
                await trio.lowlevel.checkpoint()
    with pytest.raises(FilterError, match="shut down"):
        await pool.apply(".", None)


async def test_exception_in_the_pool_block_ends_the_workers(ledger: ProcessLedger) -> None:
    with pytest.RaisesGroup(ValueError):
        async with one_worker(ledger) as pool:
            await pool.apply(".", 1)
            raise ValueError("body")
    assert pool.statistics().workers == 0


@pytest.mark.parametrize(
    ("argv", "why", "transient"),
    [
        (("/no/such/program",), "its worker failed: cannot start", False),
        (("/bin/sh", "-c", "exit 3"), r"its worker died \(exit status 3\)", True),
        (("/bin/sh", "-c", "kill -SEGV $$"), r"its worker died \(Segmentation fault\)", True),
        (("/bin/cat",), "not an answer", False),
        ((sys.executable, "-c", "print('usage: ...')"), "answer is too large", False),
    ],
)
async def test_program_that_is_not_a_worker_is_refused(
    ledger: ProcessLedger, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], why: str, transient: bool
) -> None:
    monkeypatch.setattr(jq_pool, "_COMMAND", Command(argv, Path("/"), {}))
    async with one_worker(ledger) as pool:
        for _ in range(2):
            with pytest.raises(FilterError, match=why) as caught:
                await pool.apply(".", None)
            assert caught.value.transient is transient


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("program", "said"),
    [
        (".data + 1", "string and number cannot be added"),
        (".data | tonumber", "string cannot be parsed as a number"),
        (".data | keys", "string has no keys"),
        (".data.x", "Cannot index string"),
        (".nested + 1", "object and number cannot be added"),
        ("error(.data)", "the program failed on this object"),
        ('.data | strptime("%Y")', "a date does not match the format"),
        (".data | modulemeta", "modulemeta is not available in a filter"),
    ],
)
async def test_filter_errors_do_not_quote_the_object(program: str, said: str) -> None:
    """The object may be a Secret, and the error message is written into a status. So the message must not quote the object."""
    async with open_jq_pool(None, limits=PATIENT_FILTERS) as pool:
        with pytest.raises(FilterError) as caught:
            await pool.apply(program, {"data": "hunter22", "nested": {"a": {"b": "hunter22 (x)"}}})
    assert "hunter22" not in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.slow
async def test_requests_of_a_used_worker_fail_when_the_pool_closes(ledger: ProcessLedger) -> None:
    """The worker has already answered a request. Sometimes the pool is closed while the worker works on another request, and
    sometimes between two requests.
    """
    for turns in range(scaled(200, 40)):
        async with trio.open_nursery() as nursery:

            async def wait(pool: JqPool, program: str) -> None:
                with pytest.raises(FilterError, match="shut down"):
                    while True:
                        await pool.apply(program, None)

            async with one_worker(ledger) as pool:
                assert await pool.apply(".", 1) == 1
                nursery.start_soon(wait, pool, ENDLESS if turns % 2 else "1")
                nursery.start_soon(wait, pool, "2")
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()


async def test_one_owner_uses_at_most_one_slot(ledger: ProcessLedger) -> None:
    async with open_jq_pool(ledger, workers=2, limits=PATIENT_FILTERS) as pool, trio.open_nursery() as nursery:
        greedy, other = pool.of("greedy"), pool.of("other")
        nursery.start_soon(greedy.apply, ENDLESS, 0)
        while not pool.statistics().requests:
            await trio.lowlevel.checkpoint()
        for number in range(1, 8):
            nursery.start_soon(greedy.apply, ENDLESS, number)
        nursery.start_soon(greedy.of("greedy").check, ".")
        await other.check(".")
        for number in range(20):
            assert await other.apply(".", number) == number
        assert pool.statistics().requests == 22
        nursery.cancel_scope.cancel()


async def test_cancelled_request_releases_its_slot_to_another_owner(ledger: ProcessLedger) -> None:
    async with open_jq_pool(ledger, workers=2, limits=PATIENT_FILTERS) as pool, trio.open_nursery() as nursery:
        greedy = pool.of("greedy")
        leaving = trio.CancelScope()
        nursery.start_soon(_left, leaving, greedy)
        while not pool.statistics().requests:
            await trio.lowlevel.checkpoint()
        leaving.cancel()
        nursery.start_soon(greedy.apply, ".", 1)
        assert await pool.of("other").apply(".", 2) == 2
        assert pool.statistics().requests == 2
        nursery.cancel_scope.cancel()


async def _left(scope: trio.CancelScope, filters: OwnedFilters) -> None:
    with scope:
        await filters.apply(ENDLESS, None)


@pytest.mark.slow
async def test_repeatedly_late_filter_is_refused_without_running(ledger: ProcessLedger) -> None:
    async with open_jq_pool(ledger, workers=1, limits=JqLimits(seconds=0.3)) as pool:
        for _ in range(LATE_IN_A_ROW):
            with pytest.raises(FilterError, match="longer than") as caught:
                await pool.of("web").apply(ENDLESS, None)
            assert (caught.value.transient, caught.value.at_once) == (True, False)
        asked = pool.statistics().requests
        with pytest.raises(FilterError, match="3 times in a row, and is not run for 60 s") as caught:
            await pool.of("web").apply(ENDLESS, None)
        assert (caught.value.transient, caught.value.late) == (True, True)
        assert pool.statistics().requests == asked == LATE_IN_A_ROW
