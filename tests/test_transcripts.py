"""Every command in `wharfinger --help` is in a golden transcript, in each output format that it has.

The transcripts of most commands that query a daemon are checked in `tests/debug/test_session.py`, and the others here.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.debug.profile.profiles import PROFILE
from tests.debug.support.canned import CannedInspector
from tests.debug.support.golden import GOLDEN, check_golden, ran, transcript_of, unchanging, words_of
from tests.packages.support.charts import chart, write
from tests.packages.support.signing import KEY
from tests.programs import PATIENCE_S, ROOT, attempt, wharfinger
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger import __version__ as wharfinger_version
from wharfinger.__main__ import build_parser
from wharfinger.debug.profile.sampler import Sampler
from wharfinger.debug.server.server import open_debug_server
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.trust.keys import public_pem
from wharfinger.runtime.daemon.engine import ENGINE

pytestmark = pytest.mark.unmeasured

PACKAGE: Final = "FOLDER/packages/hello"
PUSHED: Final = "oci-layout:FOLDER/layout/hello"
OFFLINE: Final = (
    "version",
    "completion tcsh",
    "completion ksh",
    "run --kubeconfig FOLDER/none --state-dir FOLDER/state",
    *(f"plan -f FOLDER/apps.yaml --packages FOLDER/packages{form}" for form in ("", " -o json", " -o yaml")),
    *(f"build FOLDER/chart{form}" for form in ("", " -o json", " --name shop")),
    "build FOLDER/none",
    *(f"diff FOLDER/chart --against FOLDER/newer{form}" for form in ("", " -o json", " -o markdown")),
    *(f"check FOLDER/chart{form}" for form in ("", " -o json")),
    *(f"test FOLDER/chart{form}" for form in ("", " -o json")),
    *(f"tree FOLDER/chart{form}" for form in ("", " -o text", " -o name", " -o json", " -o yaml", " -o mermaid")),
    *(f"cache stats{form}" for form in ("", " -o json")),
    *(f"cache gc --max-mib 0{form}" for form in ("", " -o json")),
    *(f"package {check} {PACKAGE}{form}" for check in ("check", "lint") for form in ("", " -o json")),
    f"package push {PACKAGE} {PUSHED}",
    f"package push {PACKAGE} {PUSHED}:2.0.0",
    f"package inspect {PUSHED}:1.0.0",
    f"package inspect {PUSHED}:2.0.0",
    f"package verify {PUSHED}:1.0.0 --repository FOLDER/repository.yaml",
    "repository mirror oci-layout:FOLDER/layout oci-layout:FOLDER/mirror --no-images --dry-run",
    "repository mirror oci-layout:FOLDER/layout oci-layout:FOLDER/mirror --no-images",
    *(f"hook config {PACKAGE}{form}" for form in ("", " -o json")),
    *(f"hook context {PACKAGE}/hooks/hello.sh{form}" for form in ("", " -o json")),
    *(f"hook run {PACKAGE}/hooks/hello.sh{form}" for form in ("", " -o json")),
    "hook shell-lib",
    "replay FOLDER/none",
)
RIGHTS: Final = tuple(f"package rights FOLDER/chart{form}" for form in ("", " -o json"))
PROCESS: Final = (
    *(f"memory{form}" for form in ("", " -o json", " -o yaml")),
    *(f"profile --seconds 1{form}" for form in ("", " -o collapsed", " -o speedscope", " -o json", " -o yaml")),
)
HOOK: Final = bash(
    "configVersion: v1\nonStartup: 5\nkubernetes:\n- {name: maps, apiVersion: v1, kind: ConfigMap}\n",
    'echo "hello from a hook"\necho \'{"op":"add","path":"/hello/seen","value":2}\' >"$VALUES_JSON_PATCH_PATH"',
)
TESTS: Final = "tests:\n- {name: the default, expect: [{object: ConfigMap/web, matches: {data: {text: none}}}]}\n"
APPLICATION: Final = """\
apiVersion: wharfinger.dev/v1alpha1
kind: Application
metadata: {name: first, namespace: default}
spec: {packageName: hello, packageVersion: 1.0.0}
---
apiVersion: wharfinger.dev/v1alpha1
kind: Application
metadata: {name: second, namespace: default}
spec: {packageName: absent, packageVersion: 1.0.0}
"""
VARYING: Final = (
    (re.compile(re.escape(str(ROOT))), "CHECKOUT"),
    (re.compile(r"\(Python \d+\.\d+\.\d+\)"), "(Python VERSION)"),
    (re.compile(r"\b\d+(?:\.\d+)? (bytes|[KM]i?B)\b"), r"NUMBER \1"),
    (re.compile(r"(\b\w*(?:[bB]ytes|Seconds)\"?: ?)[\d.]+(?:e-\d+)?"), r"\1NUMBER"),
    (re.compile(rf'((?:wharfinger |"version":")){re.escape(wharfinger_version)}'), r"\1VERSION"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"/[\w-]{43}/\?token=[\w-]{43}"), "/PATH/?token=TOKEN"),
)
ON_TERMINAL: Final = {("top",)}
"""Commands whose screen is in another golden file: `tests/debug/testdata/top.txt`."""
MCP: Final = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "why", "arguments": {"package": "prod.shop"}},
    },
)


def prepare(folder: Path) -> None:
    """Write the files that the commands read: a package, two versions of a chart, and resources."""
    hooked(folder / "packages" / "hello", {"hello.sh": HOOK}, name="hello")
    write(chart(folder / "chart", "web", "1.0.0"), {"values.yaml": "text: none\n", "tests/a.test.yaml": TESTS})
    write(chart(folder / "newer", "web", "1.1.0"), {"values.yaml": "text: some\n"})
    (folder / "apps.yaml").write_text(APPLICATION)
    spec: JsonObject = {"registry": {"repo": "registry.example/hello"}, "verify": {"keys": [public_pem(KEY)]}}
    (folder / "repository.yaml").write_text(write_yaml({"kind": "PackageRepository", "spec": spec}))


def environment(folder: Path) -> dict[str, str]:
    """Return environment variables with ``folder`` as the home and the cache, and without the chart engine on PATH."""
    return {
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "NO_COLOR": "",
        "PYTHONUNBUFFERED": "1",
        "PATH": _path_without_engine(),
    }


def _path_without_engine() -> str:
    """Return PATH without the folders that contain the chart engine. With an engine, the cache would have other entries."""
    return os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / ENGINE).exists())


def fixed(text: str, folder: Path) -> str:
    text = unchanging(text, folder)
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "commands"), [("offline", OFFLINE), ("rights", RIGHTS)])
def test_output_of_commands_without_a_daemon_is_golden(name: str, commands: Sequence[str], tmp_path: Path) -> None:
    prepare(tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return attempt(*wharfinger(*words), env=environment(tmp_path))

    check_golden(f"{name}.txt", fixed(transcript_of(commands, run, tmp_path), tmp_path))


@pytest.mark.slow
async def test_output_of_long_running_commands_is_golden(tmp_path: Path) -> None:
    lines = (
        ("control-plane --listen 127.0.0.1:0 --kubeconfig FOLDER/plane/kubeconfig", ""),
        ("dashboard --port 0 --socket FOLDER/s", ""),
        ("mcp --socket FOLDER/s", "".join(f"{json.dumps(each)}\n" for each in MCP)),
    )
    parts = []
    async with open_debug_server(tmp_path / "s", CannedInspector()):
        for line, given in lines:
            done = await trio.to_thread.run_sync(stopped, line, given, tmp_path)
            typed = "".join(f"< {each}\n" for each in given.splitlines())
            parts.append(ran(line, done).replace("\n", f"\n{typed}", 1))
    check_golden("running.txt", fixed("\n".join(parts), tmp_path))


@pytest.mark.slow
async def test_output_of_profiling_commands_is_golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of this test has a fixed profile and fixed memory figures, because real ones depend on the machine."""
    monkeypatch.setattr(Sampler, "run", lambda _sampler: PROFILE)
    parts = []
    async with open_debug_server(tmp_path / "s", CannedInspector()):
        for line in PROCESS:
            words = wharfinger(*words_of(line, tmp_path), "--socket", str(tmp_path / "s"))
            done = await trio.to_thread.run_sync(partial(attempt, *words, env=environment(tmp_path)))
            parts.append(ran(line, done))
    check_golden("process.txt", unchanging("\n".join(parts), tmp_path))


def stopped(line: str, given: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command, and stop it.

    If ``given`` is empty, stop it once it has printed its first line, and otherwise once it has answered each request in
    ``given``.
    """
    words = wharfinger(*words_of(line, folder))
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env={**os.environ, **environment(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(given)
        process.stdin.flush()
        answers = given.count('"id"') or 1
        out = "".join(process.stdout.readline() for _ in range(answers))
        if given:
            process.stdin.close()
            process.stdin = None
        else:
            process.send_signal(signal.SIGTERM)
        rest, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(words, process.returncode, out + rest, err)


Words = tuple[str, ...]


def leaves(parser: argparse.ArgumentParser, command: Words = ()) -> Iterator[tuple[Words, set[str]]]:
    """Yield every command that has no subcommands, with those of the formats ``json`` and ``yaml`` that `-o` can select."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for each in below:
        for name, sub in each.choices.items():
            yield from leaves(sub, (*command, name))
    if not below:
        output = next((each for each in parser._actions if "-o" in each.option_strings), None)
        forms = {"json", "yaml"} if output is not None else set()
        if output is not None and output.choices:
            forms &= set(output.choices)
        yield command, forms - ({output.default} if output is not None else set())


def typed_lines() -> list[list[str]]:
    """Return the words of the commands in the golden transcripts."""
    texts = [path.read_text() for path in sorted(GOLDEN.glob("*.txt"))]
    found = [line for text in texts for line in text.splitlines() if line.startswith("$ wharfinger ")]
    return [shlex.split(line)[2:] for line in found]


def test_every_command_is_in_a_golden_transcript() -> None:
    lines = typed_lines()
    missing = []
    for command, forms in leaves(build_parser("*")):
        if command in ON_TERMINAL:
            assert (GOLDEN / f"{command[0]}.txt").exists()
            continue
        own = [line for line in lines if tuple(line[: len(command)]) == command]
        missing += [] if own else [" ".join(command)]
        missing += [f"{' '.join(command)} -o {form}" for form in sorted(forms) if not any(form in line for line in own)]
    assert missing == []
