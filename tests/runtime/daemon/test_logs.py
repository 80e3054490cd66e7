"""Log lines: one record is one line, in text and in JSON, and names its package."""

import io
import json
import logging
import sys

import pytest
import trio
import trio.testing

from wharfinger.queue.lane import acting_for
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.runtime.daemon.logs import LogFormat, set_up_logging

log = logging.getLogger("wharfinger.test")


def test_a_text_record_is_one_line_whatever_it_contains() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.TEXT, "info", stream)
    log.info("from a registry: %s", "a\nb\x1b[31m")
    assert stream.getvalue().count("\n") == 1
    assert r"a\nb\x1b[31m" in stream.getvalue()
    assert " INFO " in stream.getvalue()


def test_a_json_record_is_one_object_on_one_line() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.JSON, "debug", stream)
    log.debug("x\ny")
    record = json.loads(stream.getvalue())
    assert (record["level"], record["msg"], record["logger"]) == ("debug", "x\ny", "wharfinger.test")
    assert record["time"].endswith("Z")


def test_json_contains_no_line_breaks_and_no_terminal_commands() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.JSON, "info", stream)
    said = "a\x85b\u2028c\x9b31m\x7f \U000e0001 \ud800 ä"
    log.info("%s", said, extra={"fields": {"hook_k\u2029": said}})
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
    assert "ä" in line
    assert (json.loads(line)["msg"], json.loads(line)["hook_k\u2029"]) == (said, said)


def test_names_of_fields_are_escaped() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.TEXT, "info", stream)
    log.info("said", extra={"fields": {"hook_a level=error [other]\nx": "v"}})
    assert stream.getvalue().endswith('said "hook_a level=error [other]\\nx"=v\n')


FIELDS = {"hook_a": "b", "hook_n": {"x": [1]}, "hook_s": "two words", "hook_e": "", "level": "forged", "time": "forged"}


def test_fields_follow_the_message_in_text_on_the_same_line() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.TEXT, "info", stream)
    log.info("said", extra={"fields": {**FIELDS, "hook_l": "a\nb"}})
    (line,) = stream.getvalue().splitlines()
    _, _, said = line.partition(" said ")
    assert said.startswith('hook_a=b hook_n={"x": [1]} hook_s="two words" hook_e="" ')
    assert r"hook_l=" in said


def test_fields_in_json_replace_no_standard_field() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.JSON, "info", stream)
    log.warning("said", extra={"fields": FIELDS})
    record = json.loads(stream.getvalue())
    assert (record["hook_a"], record["hook_n"], record["hook_e"]) == ("b", {"x": [1]}, "")
    assert (record["msg"], record["level"]) == ("said", "warning")
    assert record["time"].endswith("Z")


def test_invalid_fields_are_omitted() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.TEXT, "info", stream)
    log.info("said", extra={"fields": "no mapping"})
    assert stream.getvalue().endswith("said\n")


@pytest.mark.parametrize("form", list(LogFormat))
def test_a_traceback_is_part_of_the_record(form: LogFormat) -> None:
    stream = io.StringIO()
    set_up_logging(form, "info", stream)
    try:
        raise ValueError("boom")
    except ValueError:
        log.exception("it failed")
    assert "ValueError: boom" in stream.getvalue()


def test_a_traceback_cannot_imitate_a_record() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.TEXT, "info", stream)
    try:
        raise ValueError("x\n2026-01-01T00:00:00Z INFO    all is well\x1b[2J")
    except ValueError:
        log.exception("it failed")
    first, *rest = stream.getvalue().splitlines()
    assert "it failed" in first
    assert all(line.startswith("    | ") for line in rest)
    assert "\x1b" not in stream.getvalue()


def test_other_libraries_log_only_warnings_and_errors() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.TEXT, "debug", stream)
    logging.getLogger("elsewhere").info("chatter")
    logging.getLogger("elsewhere").warning("trouble")
    assert "chatter" not in stream.getvalue()
    assert "trouble" in stream.getvalue()


def test_records_are_written_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogFormat.TEXT, "info", sys.stderr)
    log.info("hello")
    assert "hello" in capsys.readouterr().err


async def test_records_of_a_task_name_its_queue(autojump_clock: trio.testing.MockClock) -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.JSON, "info", stream)

    class Speaks:
        name = "Speaks"

        async def execute(self) -> None:
            log.info("here")

    async with open_queues() as queues:
        queues.enqueue("prod.web", Speaks(), WorkScope("update of prod.web"))
        await queues.wait_idle("prod.web")
        record = json.loads(stream.getvalue())
        assert (record["package"], record["task"], record["cause"]) == ("prod.web", "Speaks", "update of prod.web")
        text = io.StringIO()
        set_up_logging(LogFormat.TEXT, "info", text)
        queues.enqueue("prod.web", Speaks(), WorkScope("update of prod.web"))
        await queues.wait_idle("prod.web")
        assert text.getvalue().endswith(" here [prod.web: Speaks; update of prod.web]\n")
    log.info("outside")
    assert text.getvalue().endswith(" outside\n")


async def test_colours_come_only_from_the_log_itself() -> None:
    stream = io.StringIO()
    set_up_logging(LogFormat.COLOUR, "info", stream)
    with acting_for("prod.\x1b[31mweb"):
        log.warning("careful \x1b[31mred")
    line = stream.getvalue()
    assert "\x1b[33mWARNING\x1b[0m careful \\x1b[31mred\x1b[2m [prod.\\x1b[31mweb]\x1b[0m\n" in line
