"""`wharfinger graph`, as a user types it."""

import argparse
import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import cast
from xml.etree import ElementTree as ET

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.debug.support.graph_samples import GRAPH, HOSTILE_NAMES, NODES, PACKAGES, read_dot, read_mermaid
from tests.debug.support.samples import package
from wharfinger.__main__ import build_parser, main
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.graph.commands import draw, fetch_graph
from wharfinger.debug.graph.dot import graph_to_dot
from wharfinger.debug.graph.json import graph_to_json
from wharfinger.debug.graph.mermaid import graph_to_mermaid
from wharfinger.debug.graph.model import surroundings_of
from wharfinger.debug.graph.svg import graph_to_svg
from wharfinger.debug.graph.text import ASCII, UNICODE, graph_to_text
from wharfinger.debug.server.server import open_debug_server
from wharfinger.formats.terminal_text import is_safe

INSPECTOR = CannedInspector(contents=PACKAGES, nodes=NODES)
OUTPUTS = ("text", "dot", "mermaid", "svg", "json")


class Terminal(io.StringIO):
    """A terminal that can show only ASCII."""

    encoding = "ascii"

    def isatty(self) -> bool:
        return True


def run(*words: str, out: io.StringIO | None = None) -> tuple[int, str, str]:
    """Run one `wharfinger graph` command, and return its exit code, stdout and stderr."""
    with redirect_stdout(out or io.StringIO()) as shown, redirect_stderr(io.StringIO()) as err:
        code = main(["graph", *words])
    return code, shown.getvalue(), err.getvalue()


async def run_against(
    inspector: CannedInspector, path: Path, *words: str, out: io.StringIO | None = None
) -> tuple[int, str, str]:
    async with open_debug_server(path, inspector):
        return await trio.to_thread.run_sync(lambda: run(*words, "--socket", str(path), out=out))


async def test_all_packages_are_drawn_in_every_format(tmp_path: Path) -> None:
    drawn = {
        "dot": graph_to_dot(GRAPH),
        "mermaid": graph_to_mermaid(GRAPH),
        "svg": graph_to_svg(GRAPH),
        "text": graph_to_text(GRAPH, None),
    }
    for output, document in drawn.items():
        assert await run_against(INSPECTOR, tmp_path / "s", "-o", output) == (0, document, "")
    assert await run_against(INSPECTOR, tmp_path / "s") == (0, drawn["text"], "")
    code, out, err = await run_against(INSPECTOR, tmp_path / "s", "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == graph_to_json(GRAPH)


async def test_the_neighbours_of_a_package_are_drawn(tmp_path: Path) -> None:
    part = surroundings_of(GRAPH, "prod.shop")
    assert part is not None
    for words in (("prod.shop", "-o", "dot"), ("-o", "dot", "prod.shop")):
        assert await run_against(INSPECTOR, tmp_path / "s", *words) == (0, graph_to_dot(part), "")


async def test_an_ascii_terminal_gets_an_ascii_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = await run_against(INSPECTOR, tmp_path / "s", out=Terminal())
    assert (code, out) == (0, graph_to_text(GRAPH, 40, ASCII))


async def test_every_format_is_written_to_a_file(tmp_path: Path) -> None:
    for output in OUTPUTS:
        file = tmp_path / f"graph.{output}"
        words = ("-o", output, "--output-file", str(file))
        assert await run_against(INSPECTOR, tmp_path / "s", *words, out=Terminal()) == (0, "", "")
        assert file.read_text(encoding="utf-8") == draw(GRAPH, output, None, UNICODE)


async def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "no" / "such"
    code, out, err = await run_against(INSPECTOR, tmp_path / "s", "--output-file", str(file))
    assert (code, out, err) == (1, "", f"error: {file}: cannot be written: No such file or directory\n")


@pytest.mark.parametrize("output", OUTPUTS)
async def test_an_empty_graph_is_reported_on_stderr(output: str, tmp_path: Path) -> None:
    empty = CannedInspector(contents=(), nodes=())
    code, out, err = await run_against(empty, tmp_path / "s", "-o", output)
    assert code == 0
    assert err == "no packages: `kubectl apply` an Application or a Module, then run this command again\n"
    assert (out == "") == (output == "text")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("prod/shop", "did you mean prod.shop?"), ("none", "`wharfinger graph` draws all")],
)
async def test_an_unknown_package_is_reported_with_a_hint(name: str, hint: str, tmp_path: Path) -> None:
    said = f"error: no package is named {name!r}, and no package refers to it; {hint}\n"
    assert await run_against(INSPECTOR, tmp_path / "s", name) == (1, "", said)
    with pytest.raises(NoSuchPackageError):
        await fetch_graph(INSPECTOR, name)


async def test_a_graph_too_large_for_mermaid_is_reported(tmp_path: Path) -> None:
    many = tuple(replace(NODES[3], name=f"prod.web{at}") for at in range(90))
    code, out, err = await run_against(CannedInspector(contents=(), nodes=many), tmp_path / "s", "-o", "mermaid")
    assert code == 0
    assert len(read_mermaid(out)[1]) > 500
    assert err.startswith("mermaid draws at most 500 edges")


def test_a_missing_daemon_is_reported_and_no_file_written(tmp_path: Path) -> None:
    code, out, err = run("--socket", str(tmp_path / "none"), "--output-file", str(tmp_path / "file"))
    assert (code, out) == (1, "")
    assert err.startswith(f"error: no daemon answers on {tmp_path}/none: no such socket;")
    assert not (tmp_path / "file").exists()


def test_an_unknown_format_is_a_usage_error() -> None:
    with redirect_stderr(io.StringIO()) as err, pytest.raises(SystemExit) as left:
        main(["graph", "-o", "png"])
    assert left.value.code == 2
    assert "text" in err.getvalue()


def test_help_names_all_arguments_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["graph", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for word in ("NAME", *OUTPUTS, "--output-file", "--socket", "Exit code 0: drawn", "1: no daemon answers"):
        assert word in said


def test_the_completed_command_has_its_options() -> None:
    parser = build_parser("*")
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    choices = cast("dict[str, argparse.ArgumentParser]", commands.choices)
    assert "--output-file" in choices["graph"].format_help()


async def test_hostile_names_are_escaped_in_every_format(tmp_path: Path) -> None:
    names = [name for name in HOSTILE_NAMES if name.isprintable() or name == "\x1b[31m\x00"]
    nodes = tuple(replace(NODES[3], name=name, subscriptions=tuple(names)) for name in names)
    hostile = CannedInspector(contents=(package(names[-1], kind="Module", message="\x1b[2J"),), nodes=nodes)
    readers: dict[str, Callable[[str], object]] = {
        "dot": read_dot,
        "mermaid": read_mermaid,
        "svg": ET.fromstring,
        "json": json.loads,
    }
    for output in OUTPUTS:
        code, out, _ = await run_against(hostile, tmp_path / "s", "-o", output)
        assert code == 0
        assert is_safe(out, allow="\n")
        readers.get(output, str)(out)
