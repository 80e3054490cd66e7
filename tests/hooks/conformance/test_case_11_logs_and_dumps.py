"""Case 11: exact log records of hook output, and debug dumps of queues."""

import io
import json
import logging
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.hooks.conformance.golden import variables
from tests.hooks.support.scripts import bash, run_of
from tests.queue.tasks import Diary, Work, permanent, transient
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.runner import HookOutcome, HookRun, LogRecord
from wharfinger.process.command import Limits
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.dump import TaskDump
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.state import Rules
from wharfinger.runtime.daemon.logs import LogFormat, set_up_logging

LONG = "x" * 20_000


async def printed(folder: Path, script: str) -> tuple[list[LogRecord], HookOutcome]:
    """Return the log records of a hook's output, and the outcome of the run."""
    records: list[LogRecord] = []
    base = run_of(bash(folder, script))
    run = HookRun(base.name, base.executable, base.cwd, base.contexts, {}, {}, on_record=records.append)
    runner = ProcessHookRunner(folder / "runs", Limits(wall_s=60, stdout_bytes=1_000_000), environment=variables())
    return records, await runner.run(run)


def text(message: str) -> LogRecord:
    return LogRecord("stdout", "info", message)


def spoken(level: str, message: str, **fields: JsonValue) -> tuple[str, str, dict[str, JsonValue]]:
    return level, message, {**fields, "proxyJsonLog": True}


JSON_LINES: dict[str, tuple[str, str, dict[str, JsonValue]]] = {
    '{"level":"info","msg":"x","a":"b"}': spoken("info", "x", hook_a="b"),
    '{"a":1}': spoken("info", "hook result", hook_a=1),
    '{"msg":"late","time":"2026-01-01T00:00:00Z","n":{"deep":[1,null]}}': spoken(
        "info", "late", hook_n={"deep": [1, None]}
    ),
    '{"level":"error","msg":"broken"}': spoken("error", "broken"),
    '{"level":"warn","msg":"look"}': spoken("warning", "look"),
    '{"level":"DEBUG","msg":"tiny"}': spoken("debug", "tiny"),
    "{}": spoken("info", "hook result"),
}


@pytest.mark.parametrize("line", JSON_LINES)
async def test_a_json_object_becomes_one_record(line: str, tmp_path: Path) -> None:
    records, _ = await printed(tmp_path, f"cat <<'END'\n{line}\nEND")
    assert [(record.level, record.message, dict(record.fields)) for record in records] == [JSON_LINES[line]]


async def test_lines_of_text_are_records_of_level_info(tmp_path: Path) -> None:
    records, outcome = await printed(tmp_path, 'echo " one "; echo; echo "two words"; printf "no newline"')
    assert records == [text("one"), text("two words"), text("no newline")]
    assert outcome.log_lines == ("one", "two words", "no newline")


async def test_lines_on_stderr_are_records_of_level_info(tmp_path: Path) -> None:
    records, _ = await printed(tmp_path, "echo 'look out' >&2; echo '{\"msg\":\"m\"}' >&2")
    assert [(record.stream, record.level, record.message) for record in records] == [
        ("stderr", "info", "look out"),
        ("stderr", "info", "m"),
    ]


async def test_an_object_over_several_lines_is_one_record(tmp_path: Path) -> None:
    document: JsonObject = {"msg": "m", "list": [1, {"k": "}"}], "level": "info"}
    records, _ = await printed(tmp_path, f"echo before; cat <<'END'\n{json.dumps(document, indent=2)}\nEND\necho after")
    assert [record.message for record in records] == ["before", "m", "after"]
    assert records[1].fields["hook_list"] == [1, {"k": "}"}]


@pytest.mark.parametrize("line", ['{"never": "closed"', "{not json}", "[1, 2]", '"text"', "42", "{ a } b"])
async def test_lines_without_a_json_object_are_separate_text_records(line: str, tmp_path: Path) -> None:
    records, _ = await printed(tmp_path, f"cat <<'END'\n{line}\nEND\necho after")
    assert records == [text(line), text("after")]


async def test_long_lines_are_truncated_and_marked(tmp_path: Path) -> None:
    records, _ = await printed(tmp_path, f"printf '%s\\n' {LONG}; printf '{{\"msg\":\"%s\"}}\\n' {LONG}")
    assert records[0] == text(LONG[:10_000] + ":truncated")
    hook = records[1].fields["hook"]
    assert isinstance(hook, dict)
    assert str(hook["truncated"]).endswith(":truncated")
    assert len(records) == 2


async def test_line_written_in_pieces_is_one_record(tmp_path: Path) -> None:
    script = "for part in '{\"msg\":' '\"in pieces\"' '}'; do printf '%s' \"$part\"; sleep 0.02; done; echo"
    records, _ = await printed(tmp_path, script)
    assert [record.message for record in records] == ["in pieces"]


async def test_failure_includes_the_last_line_of_the_hook(tmp_path: Path) -> None:
    _, outcome = await printed(tmp_path, "echo fine; echo 'no such bucket' >&2; exit 3")
    assert not outcome.succeeded
    assert outcome.exit_description.endswith("no such bucket")
    assert "3" in outcome.exit_description


def test_a_record_of_the_daemon_is_one_json_object() -> None:
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        set_up_logging(LogFormat.JSON, "info", stream)
        fields = {"hook_a": "b", "proxyJsonLog": True}
        logging.getLogger("wharfinger.test").info("in %d\nlines", 2, extra={"fields": fields})
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert {key: said[key] for key in ("level", "msg", "hook_a", "proxyJsonLog")} == {
        "level": "info",
        "msg": "in 2\nlines",
        "hook_a": "b",
        "proxyJsonLog": True,
    }


async def test_a_queue_is_dumped_task_by_task(autojump_clock: MockClock) -> None:
    rules = Rules(backoff=BackoffPolicy(initial_s=10, factor=2, max_s=60, jitter=0.5))
    diary = Diary()
    async with open_queues(rules, draw=lambda: 0.5) as queues:
        scope = WorkScope("hooks of p")
        for lane, work in (
            ("hooks/main", Work("hooks/a.sh events", diary, 0, transient(9))),
            ("hooks/main", Work("hooks/b.sh events", diary)),
            ("hooks/slow", Work("hooks/c.sh events", diary, 1000)),
            ("hooks/broken", Work("hooks/d.sh events", diary, 0, permanent())),
        ):
            queues.enqueue("p", work, scope, lane=lane)
        await trio.sleep(4)
        dumped = queues.dump_one("p")
        assert [shown(task) for task in dumped.tasks] == [
            (1, "hooks/main", "hooks/a.sh events", "retry in 6", 1),
            (2, "hooks/main", "hooks/b.sh events", "waits", 0),
            (3, "hooks/slow", "hooks/c.sh events", "running", 1),
            (4, "hooks/broken", "hooks/d.sh events", "parked", 1),
        ]
        assert all(task.enqueued_s_ago == 4 for task in dumped.tasks)
        assert dumped.tasks[0].error
        statistics = queues.statistics()
        assert (statistics.tasks, statistics.running, statistics.backing_off, statistics.parked) == (4, 1, 1, 1)
        scope.cancel("the package goes")
        await queues.wait_idle("p")
        assert queues.dump_one("p").tasks == ()


def shown(task: TaskDump) -> tuple[int, str, str, str, int]:
    doing = "running" if task.running else "parked" if task.parked else "waits"
    if task.retry_in_s is not None:
        doing = f"retry in {task.retry_in_s:g}"
    return task.index, task.lane, task.name, doing, task.attempt
