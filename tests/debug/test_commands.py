"""The debug commands, as a user types them, with a server in this process and without a server."""

import argparse
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import trio
import yaml

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import (
    HOOK_METRICS,
    HOSTILE,
    MANIFEST,
    METRICS,
    NODES,
    PACKAGES,
    POOLS,
    STATISTICS,
    WAITING_NODE,
    WHY,
    package,
    task,
)
from tests.programs import ROOT
from wharfinger.debug.addresses import ELSEWHERE, MAX_SETTINGS
from wharfinger.debug.commands import (
    add_dump,
    add_history,
    add_pools,
    add_queues,
    add_render,
    add_scheduler,
    add_statistics,
    add_validate,
    add_why,
    moment_in,
)
from wharfinger.debug.encoding.encoding import answer_to_json, pools_to_json, queues_to_json
from wharfinger.debug.encoding.node import node_to_json, nodes_to_json
from wharfinger.debug.encoding.package import package_to_json, packages_to_json
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.encoding.statistics import statistics_to_json
from wharfinger.debug.listing.get_command import add_get
from wharfinger.debug.printing.node import node_lines
from wharfinger.debug.server.server import open_debug_server
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.inspector import RenderSnapshot, ValidSettings

ADD = {
    "get": add_get,
    "history": add_history,
    "why": add_why,
    "dump": add_dump,
    "queues": add_queues,
    "pools": add_pools,
    "scheduler": add_scheduler,
    "statistics": add_statistics,
    "render": add_render,
    "validate": add_validate,
}


def typed(line: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for name, add in ADD.items():
        add(commands.add_parser(name))
    return parser.parse_args(line.split())


def run(line: str) -> tuple[int, str, str]:
    """Run one command, and return its exit code, stdout and stderr."""
    args = typed(line)
    handler = cast("Callable[[argparse.Namespace], int]", args.handler)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = handler(args)
    return code, out.getvalue(), err.getvalue()


async def run_against(inspector: CannedInspector, line: str, path: Path) -> tuple[int, str, str]:
    async with open_debug_server(path, inspector):
        return await trio.to_thread.run_sync(run, f"{line} --socket {path}")


@pytest.mark.parametrize("command", ["get packages", "dump"])
@pytest.mark.parametrize("output", ["json", "yaml"])
async def test_dump_prints_packages_as_json_and_yaml(command: str, output: str, tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), f"{command} -o {output}", tmp_path / "s")
    assert (code, err) == (0, "")
    assert yaml.safe_load(out) == packages_to_json(PACKAGES)
    assert out.startswith("{") == (output == "json")
    code, out, err = await run_against(CannedInspector(), f"{command} prod.shop -o {output}", tmp_path / "s")
    assert yaml.safe_load(out) == package_to_json(PACKAGES[1])
    empty = await run_against(CannedInspector(contents=()), f"{command} -o {output}", tmp_path / "s")
    assert yaml.safe_load(empty[1]) == {"apps": {}, "modules": {}}


async def test_queues_are_dumped_as_json_and_yaml(tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), "queues dump", tmp_path / "s")
    assert (code, err) == (0, "")
    assert yaml.safe_load(out) == queues_to_json(each.queue for each in PACKAGES)
    _, out, _ = await run_against(CannedInspector(), "queues dump prod.shop -o json", tmp_path / "s")
    for words in ("queues prod.shop -o json", "queues -o json dump prod.shop"):
        assert await run_against(CannedInspector(), words, tmp_path / "s") == (0, out, "")
    code, _, err = await run_against(CannedInspector(), "queues prod.shop ingress", tmp_path / "s")
    assert (code, err) == (2, "error: expected `dump` or one NAME, found prod.shop ingress\n")
    assert json.loads(out) == queues_to_json([PACKAGES[1].queue])


async def test_queues_are_printed_as_a_table(tmp_path: Path) -> None:
    odd = replace(task(2), retry_in_s=None, running=False, error="boom", cause="permanent failure", parked=True)
    several = package("prod.x", tasks=(replace(task(1), lane="hooks/q", waits_for="a slot: hooks", cause=""), odd))
    inspector = CannedInspector(contents=(PACKAGES[0], PACKAGES[1], several))
    code, out, err = await run_against(inspector, "queues dump -o table", tmp_path / "s")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
QUEUE       INDEX   LANE      TASK    ATTEMPT   ENQUEUED   STATE            WHY
prod.shop   1       main      Task1   1         12.5s      again in 14.2s   version changed; connection refused
prod.shop   2       main      Task2   2         25.0s      waiting
prod.x      1       hooks/q   Task1   1         12.5s      running          waits for a slot: hooks
prod.x      2       main      Task2   2         25.0s      parked           permanent failure; boom
"""
    )
    one = await run_against(inspector, "queues dump ingress -o table", tmp_path / "s")
    assert one == (0, "", "no tasks\n")


async def test_pools_are_printed_as_a_table(tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), "get pools", tmp_path / "s")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
NAME                  STATE     SIZE   READY   RESERVED   WAITING   STARTED   RESTARTS   MEMORY   PROBLEM
/usr/bin/python3      serving   4      3       1          0         90        1          32Mi
/usr/bin/python3 #2   unfit     4      0       0          0         0         5                   it has no os.fork
shop hooks/serve      serving   2      1       1          0         7         0          9Mi
"""
    )
    _, out, _ = await run_against(CannedInspector(), "get pool /usr/bin/python3 -o name", tmp_path / "s")
    assert out == "/usr/bin/python3\n"
    _, out, _ = await run_against(CannedInspector(), "pools dump", tmp_path / "s")
    assert yaml.safe_load(out) == pools_to_json(POOLS)
    _, out, _ = await run_against(CannedInspector(), "pools dump /usr/bin/python3 -o json", tmp_path / "s")
    assert json.loads(out) == pools_to_json(POOLS[:1])
    none = await run_against(CannedInspector(warm=()), "get pools", tmp_path / "s")
    said = "`wharfinger run --warm-hooks N` opens one for each interpreter of hooks, and --worker-pools one for each WorkerPool"
    assert none == (0, "", f"no pools: {said}\n")


async def test_statistics_are_printed_in_every_format(tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), "statistics", tmp_path / "s")
    assert (code, err) == (0, "")
    assert "\ntasks         12 in 3 queues: 2 running, 4 backing off, 1 parked " in out
    assert "\nrenders   2       2        3\n" in out
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        _, out, _ = await run_against(CannedInspector(), f"statistics -o {output}", tmp_path / "s")
        assert read(out) == statistics_to_json(STATISTICS)


async def test_statistics_are_printed_in_the_prometheus_format(tmp_path: Path) -> None:
    command = "statistics -o prometheus"
    assert await run_against(CannedInspector(), command, tmp_path / "s") == (0, METRICS + ELSEWHERE + HOOK_METRICS, "")


async def test_statistics_of_a_starting_daemon_are_empty(tmp_path: Path) -> None:
    starting = CannedInspector(counted=None)
    said = "nothing to count yet: the daemon is starting\n"
    assert await run_against(starting, "statistics", tmp_path / "s") == (0, "", said)
    assert await run_against(starting, "statistics -o json", tmp_path / "s") == (0, "null\n", "")


async def test_nodes_of_the_scheduler_are_dumped(tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), "scheduler dump", tmp_path / "s")
    assert await run_against(CannedInspector(), "scheduler", tmp_path / "s") == (code, out, err)
    assert (code, err) == (0, "")
    assert yaml.safe_load(out) == nodes_to_json(NODES)
    _, out, _ = await run_against(CannedInspector(), "scheduler dump prod.shop -o json", tmp_path / "s")
    assert json.loads(out) == node_to_json(NODES[1])


async def test_nodes_of_the_scheduler_are_printed_as_a_table(tmp_path: Path) -> None:
    inspector = CannedInspector(nodes=(*NODES, WAITING_NODE))
    code, out, err = await run_against(inspector, "scheduler dump -o table", tmp_path / "s")
    assert (code, err) == (0, "")
    assert out.splitlines() == node_lines((*NODES, WAITING_NODE), None)
    _, out, _ = await run_against(inspector, "scheduler dump prod.web -o table", tmp_path / "s")
    assert out.splitlines() == node_lines((WAITING_NODE,), None)
    empty = await run_against(CannedInspector(nodes=()), "scheduler dump -o table", tmp_path / "s")
    assert empty == (0, "", "no packages in the scheduler\n")


async def test_missing_conditions_of_a_node_are_in_the_documents(tmp_path: Path) -> None:
    inspector = CannedInspector(nodes=(WAITING_NODE,))
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        _, out, _ = await run_against(inspector, f"scheduler dump prod.web -o {output}", tmp_path / "s")
        found = read(out)
        assert found == node_to_json(WAITING_NODE)
        assert found["lacks"][0] == {"kind": "package", "name": "prod.shop", "state": "idle"}
        assert found["votes"][1]["message"] == "the script said no"


async def test_render_of_a_path_refers_to_another_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    socket = tmp_path / "s"
    code, out, err = await run_against(CannedInspector(), "render ./tree", socket)
    assert (code, out) == (1, "")
    assert err == (
        "error: expected the name of a package of a running daemon, found a path: ./tree; `wharfinger build ./tree` renders it "
        "without a cluster\n"
    )
    _, _, err = await run_against(CannedInspector(), "render tree", socket)
    assert err.startswith("error: no package named 'tree'; ")
    assert err.endswith("; if you mean the path tree, `wharfinger build tree` renders it without a cluster\n")
    for name in ("./none", "x" * 5000):
        assert "wharfinger build" not in (await run_against(CannedInspector(), f"render {name}", socket))[2]
    (tmp_path / "prod.shop").mkdir()
    assert (await run_against(CannedInspector(), "render prod.shop", socket))[0] == 0, "a package has precedence"


async def test_render_prints_the_manifest_with_secrets_redacted(tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), "render prod.shop", tmp_path / "s")
    assert (code, out, err) == (0, MANIFEST.replace("aHVudGVyMg==", "'***'"), "")
    code, out, err = await run_against(CannedInspector(), "render prod.shop --show-secrets", tmp_path / "s")
    assert (code, out, err) == (0, MANIFEST, "")
    nothing = CannedInspector(rendered={"prod.shop": RenderSnapshot("", problem="", has_chart=True)})
    assert await run_against(nothing, "render prod.shop", tmp_path / "s") == (0, "", "no manifests\n")


async def test_control_characters_in_manifests_are_escaped(tmp_path: Path) -> None:
    hostile = CannedInspector(
        rendered={"prod.shop": RenderSnapshot("# \x1b[31mred\na: 1 # ✓\n", problem="", has_chart=True)}
    )
    code, out, _ = await run_against(hostile, "render prod.shop --show-secrets", tmp_path / "s")
    assert (code, out) == (0, "# \x1b[31mred\na: 1 # ✓\n")
    with redirect_stdout(Terminal()) as terminal:
        async with open_debug_server(tmp_path / "s", hostile):
            args = typed(f"render prod.shop --show-secrets --socket {tmp_path}/s")
            handler = cast("Callable[[argparse.Namespace], int]", args.handler)
            assert await trio.to_thread.run_sync(handler, args) == 0
    assert terminal.getvalue() == "# \\x1b[31mred\na: 1 # ✓\n"


async def test_control_characters_in_metrics_are_escaped(tmp_path: Path) -> None:
    with redirect_stdout(Terminal()) as terminal:
        async with open_debug_server(tmp_path / "s", CannedInspector()):
            args = typed(f"statistics -o prometheus --socket {tmp_path}/s")
            handler = cast("Callable[[argparse.Namespace], int]", args.handler)
            assert await trio.to_thread.run_sync(handler, args) == 0
    assert is_safe(terminal.getvalue(), allow="\n")
    assert "\\u202e" in terminal.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("get packages no.such", "no package named 'no.such'; `wharfinger get packages` lists them"),
        ("dump no.such", "no package named 'no.such'; `wharfinger get packages` lists them"),
        ("pools dump /bin/sh", "no pool named '/bin/sh'; `wharfinger get pools` lists all"),
        ("get pools /usr/bin/python", "no pool named '/usr/bin/python'; did you mean '/usr/bin/python3'?"),
        ("queues dump no.such", "no queue named 'no.such'; `wharfinger queues dump` shows all"),
        (
            "scheduler dump no.such",
            "no package named 'no.such' in the scheduler; `wharfinger scheduler dump` shows all that are loaded",
        ),
        ("render no.such", "no package named 'no.such'; `wharfinger get packages` lists them"),
        ("render ingress", "package 'ingress' has no Helm chart: there is nothing to render"),
        ("render test.shop", "package 'test.shop' cannot be rendered: template: no such function"),
        ("get packages prod/shop", "no package named 'prod/shop'; did you mean prod.shop?"),
        ("dump prod/shop", "no package named 'prod/shop'; did you mean prod.shop?"),
        ("why no.such", "no package named 'no.such'; `wharfinger get packages` lists them"),
        ("why prod/shop", "no package named 'prod/shop'; did you mean prod.shop?"),
        ("why shop", "no package named 'shop'; did you mean prod.shop or test.shop?"),
        (
            "why claim/prod/shop",
            "no WorkerClaim named 'prod/shop'; `kubectl get workerclaims -A` lists them, if the daemon runs with --worker-pools",
        ),
        ("why prod.sop", "no package named 'prod.sop'; did you mean prod.shop?"),
        ("dump prod/else", "no package named 'prod/else'; `wharfinger get packages` lists them"),
        ("queues dump prod/shop", "no queue named 'prod/shop'; did you mean prod.shop?"),
        ("scheduler dump prod/shop", "no package named 'prod/shop' in the scheduler; did you mean prod.shop?"),
        ("render prod/shop", "no package named 'prod/shop'; did you mean prod.shop?"),
        (
            "scheduler dump test.shop",
            r"package 'test.shop' is not in the scheduler (Ready: two\nlines); `wharfinger why test.shop` says why",
        ),
    ],
)
async def test_unknown_names_are_reported(line: str, why: str, tmp_path: Path) -> None:
    assert await run_against(CannedInspector(), line, tmp_path / "s") == (1, "", f"error: {why}\n")


@pytest.mark.parametrize(
    "line",
    [
        "why a.b",
        "get packages",
        "get packages a.b -o json",
        "dump",
        "queues dump",
        "pools dump",
        "scheduler dump",
        "statistics",
        "render a.b",
    ],
)
def test_every_command_reports_a_missing_daemon(line: str, tmp_path: Path) -> None:
    path = tmp_path / "none"
    code, out, err = run(f"{line} --socket {path}")
    assert (code, out) == (1, "")
    assert err == (
        f"error: no daemon answers on {path}: no such socket;"
        " start `wharfinger run`, or name its socket with --socket or WHARFINGER_SOCKET\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "why",
        "why a -o table",
        "get",
        "get pods",
        "get packages -o xml",
        "dump -o table",
        "render",
    ],
)
def test_wrong_arguments_are_usage_errors(line: str) -> None:
    with redirect_stderr(io.StringIO()) as err, pytest.raises(SystemExit) as left:
        typed(line)
    assert left.value.code == 2
    assert "usage:" in err.getvalue()


def test_commands_find_the_socket_by_the_rules_of_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WHARFINGER_SOCKET", raising=False)
    monkeypatch.setenv("WHARFINGER_STATE_DIR", str(tmp_path))
    assert f"answers on {tmp_path}/run/debug.sock:" in run("dump")[2]
    monkeypatch.setenv("WHARFINGER_SOCKET", str(tmp_path / "named"))
    assert f"answers on {tmp_path}/named:" in run("dump")[2]
    assert f"answers on {tmp_path}/typed:" in run(f"dump --socket {tmp_path}/typed")[2]


async def test_texts_of_hostile_packages_are_escaped(tmp_path: Path) -> None:
    tasks = (replace(task(1), name=HOSTILE, lane=HOSTILE, error=HOSTILE, waits_for=HOSTILE),)
    odd = replace(package("prod.x", message=HOSTILE, settings={"a": HOSTILE}, tasks=tasks), warnings=(HOSTILE,))
    hostile = CannedInspector(
        contents=(replace(odd, version=HOSTILE, state=HOSTILE, tip=HOSTILE),),
        nodes=(replace(NODES[0], message=HOSTILE, reason=HOSTILE),),
    )
    for line in (
        "get packages",
        "get packages -o wide",
        "get packages -o name",
        "dump",
        "dump -o json",
        "queues dump",
        "queues dump -o table",
        "scheduler dump",
    ):
        code, out, err = await run_against(hostile, line, tmp_path / "s")
        assert (code, err) == (0, "")
        assert is_safe(out, allow="\n")
        if line.startswith("get"):
            assert len(out.splitlines()) <= 2
    code, _, err = await run_against(hostile, "dump \x1b[31m", tmp_path / "s")
    assert code == 1
    assert is_safe(err, allow="\n")


@pytest.mark.slow
async def test_get_writes_only_ascii_to_an_ascii_terminal(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    updating = replace(package(message="✓ fertig"), installed_version="1.2.2")
    command = [sys.executable, "-m", "wharfinger", "get", "packages"]
    environment = {**os.environ, "WHARFINGER_SOCKET": str(path), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    async with open_debug_server(path, CannedInspector(contents=(updating,))):
        done = await trio.run_process(
            command,
            env=environment,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            cwd=ROOT,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"1.2.2 -> 1.2.3   Ready   \\u2713 fertig\n")


@pytest.mark.slow
async def test_get_ends_quietly_when_its_reader_closes_the_pipe(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    many = CannedInspector(
        contents=tuple(package(f"prod.shop{number:05}", message="m" * 100) for number in range(3000))
    )
    command = [sys.executable, "-m", "wharfinger", "get", "packages", "--socket", str(path)]
    # Unbuffered, Python treats a partial write as complete, and the error would go unnoticed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    async with open_debug_server(path, many):
        process = await trio.lowlevel.open_process(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        assert (await process.stdout.receive_some(100)).startswith(b"NAME")
        await process.stdout.aclose()
        assert b"".join([piece async for piece in process.stderr]) == b""
        assert await process.wait() == 1


def test_help_names_every_option() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wharfinger", "get", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    for word in ("packages", "NAME", "--output", "--socket", "WHARFINGER_SOCKET", "wide"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("ingress", 0, "warning: a: old\ningress: valid for version 1.2.3\n"),
        (
            "prod.shop",
            1,
            """error: something is missing
error: sets[2].name: must be short
warning: old: is deprecated
prod.shop: not valid for version 1.2.3
""",
        ),
        ("test.shop", 3, "test.shop: not known: the package is not loaded yet\n"),
    ],
)
async def test_validate_prints_the_verdict_in_every_format(name: str, code: int, said: str, tmp_path: Path) -> None:
    inspector = CannedInspector()
    inspector.answers = {**inspector.answers, "ingress": ValidSettings("1.2.3", (Problem("a", "old"),))}
    (tmp_path / "settings").write_text("replicas: 2\nhosts: [a]\n")
    line = f"validate {name} --settings {tmp_path / 'settings'} --settings-version 2"

    assert await run_against(inspector, line, tmp_path / "s") == (code, said, "")
    assert inspector.asked == [(name, {"replicas": 2, "hosts": ["a"]}, 2)]
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        found, out, err = await run_against(inspector, f"{line} -o {output}", tmp_path / "s")
        assert (found, err) == (code, "")
        assert read(out) == answer_to_json(inspector.answers[name])


async def test_validate_reads_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspector = CannedInspector()
    for text, settings in ((b"a: 1", {"a": 1}), (b"", {})):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert (await run_against(inspector, "validate ingress --settings -", tmp_path / "s"))[0] == 0
        assert inspector.asked.pop() == ("ingress", settings, 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        ("[]", "expected an object, found a list"),
        ("a: [", "settings"),
        ("a" * (MAX_SETTINGS + 1), f"more than {MAX_SETTINGS} bytes"),
    ],
)
async def test_validate_needs_a_file_of_settings(text: str | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    if text is not None:
        file.write_text(text)
    code, out, err = await run_against(CannedInspector(), f"validate prod.shop --settings {file}", tmp_path / "s")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert says in err
    assert err.count("\n") == 1


async def test_validate_reports_an_unknown_package(tmp_path: Path) -> None:
    (tmp_path / "settings").touch()
    line = f"validate prod/shop --settings {tmp_path / 'settings'}"
    code, out, err = await run_against(CannedInspector(), line, tmp_path / "s")
    assert (code, out, err) == (1, "", "error: no package named 'prod/shop'; did you mean prod.shop?\n")


@pytest.mark.parametrize("version", ["-1", "x", "1001", "²", "0000001001", "9" * 5000, "0" * 9 + "9" * 5000])
def test_validate_refuses_impossible_versions_of_settings(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        typed(f"validate prod.shop --settings a --settings-version={version}")
    said = capsys.readouterr().err
    assert "expected a number up to 1000, found" in said
    assert len(said) < 1000


async def test_why_prints_causes_and_a_remedy(tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), "why prod.shop", tmp_path / "s")
    assert (code, err) == (3, "")
    first, *rest = out.splitlines()
    assert first.startswith("prod.shop  waits for ingress  since ")
    assert rest == [
        "ingress    fails: PackageHookFailed: hooks/a.sh: exit status 3; attempt 4",
        "remedy: look at the hook's lines in the daemon's log",
        "also: prod.shop needs metrics",
    ]
    assert await run_against(CannedInspector(), "why ingress", tmp_path / "s") == (
        0,
        "ingress: ready; nothing blocks it\n",
        "",
    )


@pytest.mark.parametrize("output", ["json", "yaml"])
async def test_why_prints_documents_for_programs(output: str, tmp_path: Path) -> None:
    code, out, _ = await run_against(CannedInspector(), f"why prod.shop -o {output}", tmp_path / "s")
    assert code == 3
    assert yaml.safe_load(out) == record_to_json(WHY)


async def test_why_explains_a_past_state(tmp_path: Path) -> None:
    then = "2026-11-21T04:05:00Z"
    code, out, err = await run_against(CannedInspector(), f"why prod.shop --at {then}", tmp_path / "s")
    now = await run_against(CannedInspector(), "why prod.shop", tmp_path / "s")
    assert (code, err) == (3, "")
    assert out.splitlines()[-1] == now[1].splitlines()[-1]
    early = await run_against(CannedInspector(), "why prod.shop --at 2026-11-20T04:05:00Z", tmp_path / "s")
    assert early[0] == 1
    assert "before 2026-11-20T04:05:00Z is kept; `wharfinger history " in early[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21T04:03:00+01:00", "2026-11-21T03:03:00+00:00"),
        ("04:03", "2026-11-21T04:03:00+00:00"),
        ("23:59:59", "2026-11-20T23:59:59+00:00"),
        ("10m", "2026-11-21T11:50:00+00:00"),
        ("yesterday", None),
        ("2026-11-21", None),
        ("13:03:00+02:00", "2026-11-21T11:03:00+00:00"),
        ("00:30:00-11:00", "2026-11-21T11:30:00+00:00"),
    ],
)
def test_times_of_users_are_parsed(text: str, expected: str | None) -> None:
    found = moment_in(text, datetime(2026, 11, 21, 12, tzinfo=UTC))
    assert (found.astimezone(UTC).isoformat() if found is not None else None) == expected


async def test_history_prints_decisions_and_all_events_on_request(tmp_path: Path) -> None:
    code, out, err = await run_against(CannedInspector(), "history prod.shop", tmp_path / "s")
    assert (code, err) == (0, "")
    first, header, *rows = out.splitlines()
    assert first == "3 earlier events are not kept"
    assert header.split() == ["TIME", "MACHINE", "EVENT", "BEFORE", "AFTER", "CAUSE"]
    assert [row.split()[1] for row in rows] == ["lifecycle", "status"]
    code, out, _ = await run_against(CannedInspector(), "history prod.shop --all -o json", tmp_path / "s")
    assert [event["machine"] for event in json.loads(out)["events"]] == ["lifecycle", "queue", "status"]
    code, out, err = await run_against(CannedInspector(), "history no.such", tmp_path / "s")
    assert (code, out) == (1, "")
    assert "no package named 'no.such'" in err


async def test_control_characters_in_explanations_are_escaped(tmp_path: Path) -> None:
    hostile = replace(WHY, remedy=HOSTILE, also=(HOSTILE,), causes=(replace(WHY.causes[0], message=HOSTILE),))
    inspector = CannedInspector(explanations={"prod.shop": hostile})
    for output in ("text", "json", "yaml"):
        code, out, err = await run_against(inspector, f"why prod.shop -o {output}", tmp_path / "s")
        assert (code, err) == (3, "")
        assert is_safe(out, allow="\n")


def test_the_exit_codes_of_why_are_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        typed("why --help")
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Exit code 0: the package is ready and nothing blocks it; 3: something blocks it, or the installed version"
        in said
    )
