"""`wharfinger mcp`, which offers tools to AI agents. The client of the MCP SDK calls the tools, in memory and over stdio."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import package
from tests.programs import PATIENCE_S
from wharfinger.__main__ import main
from wharfinger.debug.errors import DebugError
from wharfinger.debug.mcp_command import MAX_CHARS, ToolInputError, Tools, make_server
from wharfinger.debug.server.server import open_debug_server

NAMES = ["diff", "graph", "history", "plan", "why"]


async def planned(files: list[Path], folder: Path, version: str) -> str:
    return f"{[file.name for file in files]} {folder.name} {version}"


@asynccontextmanager
async def connected(folder: Path, inspector: CannedInspector | None = None) -> AsyncIterator[Client]:
    server = make_server(Tools(folder / "s", folder, planned))
    async with open_debug_server(folder / "s", inspector or CannedInspector()), Client(server) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_each_tool_returns_the_output_of_its_command(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        tools = (await client.list_tools()).tools
        assert sorted(tool.name for tool in tools) == NAMES
        for tool in tools:
            assert tool.description
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
        for name, arguments, expected in (
            ("why", {"package": "prod.shop"}, "prod.shop"),
            ("history", {"package": "prod.shop", "everything": True}, "MACHINE"),
            ("graph", {}, "prod.shop"),
            ("graph", {"package": "prod.shop"}, "prod.shop"),
            ("diff", {"package": "prod.shop"}, "objects: "),
            ("plan", {"files": ["a.yaml"], "packages": "p", "kubernetes_version": "1.34"}, "['a.yaml'] p 1.34"),
        ):
            result = await client.call_tool(name, arguments)
            assert not result.is_error, text_of(result)
            assert expected in text_of(result)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("why", {"package": "prod.shpo"}, "did you mean prod.shop?"),
        ("why", {"package": "prod.shop", "at": "yesterday"}, "expected a time like"),
        ("diff", {"package": "no.such"}, "no package named 'no.such'"),
        ("graph", {"package": "no.such"}, "no package is named 'no.such'"),
        ("plan", {"files": ["../../etc/passwd"], "packages": "p"}, "the only folder that may be read"),
        ("plan", {"files": [], "packages": "p"}, "at least one file"),
    ],
)
async def test_a_failure_is_an_error_with_the_text_of_the_command(
    tmp_path: Path, name: str, arguments: dict[str, object], why: str
) -> None:
    async with connected(tmp_path) as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert why in text_of(result)


async def test_no_secret_reaches_an_agent(tmp_path: Path) -> None:
    told = package(message="login as app:hunter2 failed", settings={"password": "hunter2"})
    async with connected(tmp_path, CannedInspector(contents=(told,))) as client:
        for name in ("why", "history", "graph", "diff"):
            assert "hunter2" not in text_of(await client.call_tool(name, {"package": "prod.shop"}))


async def test_the_length_of_an_answer_is_bounded(tmp_path: Path) -> None:
    async def much(_files: list[Path], _folder: Path, _version: str) -> str:
        return "x" * (MAX_CHARS + 7)

    found = await Tools(tmp_path / "s", tmp_path, much).plan(["a"], "b")
    assert found.endswith("x\n… 7 more characters")
    with pytest.raises(ToolInputError):
        await Tools(tmp_path / "s", tmp_path, much).plan(["/etc/passwd"], "b")
    assert issubclass(ToolInputError, DebugError)


@pytest.mark.slow
async def test_the_command_serves_its_tools_over_stdio(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "app.yaml").write_text("kind: Application\n")
    arguments = ["-m", "wharfinger", "mcp", "--socket", str(tmp_path / "s"), "--root", str(tmp_path)]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    async with open_debug_server(tmp_path / "s", CannedInspector()), Client(server) as client:
        assert sorted(tool.name for tool in (await client.list_tools()).tools) == NAMES
        assert "prod.shop" in text_of(await client.call_tool("why", {"package": "prod.shop"}))
        result = await client.call_tool("plan", {"files": ["app.yaml"], "packages": "packages"})
        assert result.is_error
        assert "app.yaml" in text_of(result)


def test_ctrl_c_ends_the_command_on_a_terminal(tmp_path: Path) -> None:
    screen, terminal = os.openpty()
    arguments = [sys.executable, "-m", "wharfinger", "mcp", "--socket", str(tmp_path / "s")]
    with subprocess.Popen(arguments, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Ctrl-C ends it" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == -signal.SIGINT
    os.close(screen)
    os.close(terminal)


@pytest.mark.parametrize(("name", "problem"), [("absent", "no such folder"), ("file", "it is not a folder")])
def test_a_root_that_is_no_folder_is_refused_at_the_start(
    name: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as caught:
        main(["mcp", "--root", str(tmp_path / name)])
    assert caught.value.code == 2
    assert f"argument --root: {tmp_path / name}: {problem}\n" in capsys.readouterr().err
