"""The command `wharfinger mcp`: read-only tools for agents, by the Model Context Protocol over stdio (decision 0050).

Each tool does the work of the command of the same name, and returns the text that the command would print. A query of the daemon
blocks a worker thread; the protocol itself runs on trio. Nothing but the protocol is ever written to stdout.
"""

import argparse
import importlib.util
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import add_socket, print_failure
from wharfinger.debug.client.command_output import history_text, why_text
from wharfinger.debug.client.exchange import run_without_loop
from wharfinger.debug.client.unknown_names import no_such_package
from wharfinger.debug.errors import DebugError
from wharfinger.debug.graph.commands import draw, fetch_graph
from wharfinger.debug.graph.text import UNICODE
from wharfinger.debug.package.difference_text import DifferenceProblemError, difference_lines, summary_lines
from wharfinger.formats.option_values import path_option
from wharfinger.kube.times import parse_time
from wharfinger.runtime.paths import default_socket

if TYPE_CHECKING:
    from mcp.server import MCPServer

Planned = Callable[[list[Path], Path, str], Awaitable[str]]
"""The function that returns the text of a plan for files, a folder of packages, and a version of Kubernetes.

The composition root passes it. The function raises DebugError.
"""
MAX_CHARS: Final = 100_000
"""The maximum length of an answer. Longer answers are cut, because a model reads them."""
_TEXT: Final = "text"
_INSTRUCTIONS: Final = (
    "Wharfinger installs packages into a Kubernetes cluster. These tools only read. If a package is not in the wanted "
    "state, begin with `why`: the last cause in its answer is the root cause, and the remedy says what to do. The name of "
    "a package is NAMESPACE.NAME for an Application, and the name of the resource for a Module; `graph` lists all packages."
)
_T = TypeVar("_T")


class ToolInputError(DebugError):
    """A tool was called with an argument that it does not accept."""


def add_mcp(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger mcp`."""
    parser.description = (
        "Serve read-only tools for AI agents over stdin and stdout (Model Context Protocol). The tools why, plan, graph, "
        "history and diff give the same answers as the commands of these names, but at most 100,000 characters. Secrets are "
        "masked. The command needs the extra [mcp]. Exit code 0: the client closed stdin; 1: the extra is not installed."
    )
    parser.add_argument(
        "--root",
        type=_folder,
        default=Path(),
        metavar="FOLDER",
        help="the folder below which the tool `plan` may read files (default: the current folder)",
    )
    add_socket(parser)
    parser.set_defaults(handler=_serve)


def _folder(text: str) -> Path:
    path = path_option(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: {'it is not a folder' if path.exists() else 'no such folder'}")
    return path


def _serve(args: argparse.Namespace) -> int:
    if importlib.util.find_spec("mcp") is None:
        return print_failure(DebugError("the Python SDK of MCP is not installed; pip install 'wharfinger[mcp]'"))
    import trio  # noqa: PLC0415 - only this command has an event loop

    socket = cast("Path | None", args.socket) or default_socket()
    tools = Tools(socket, cast("Path", args.root), cast("Planned", args.planned))
    # A thread waits for the next line of stdin, and cannot be cancelled. So the signal ends the process. Nothing has to be
    # undone.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.stdin.isatty():
        sys.stderr.write("an agent speaks to this command over stdin and stdout; Ctrl-C ends it\n")
    trio.run(make_server(tools).run_stdio_async)
    return 0


class Tools:
    """The tools of the MCP server. Clients get their docstrings as the descriptions of the tools."""

    def __init__(self, socket: Path, root: Path, planned: Planned) -> None:
        self._socket = socket
        self._root = root.resolve()
        self._planned = planned

    async def why(self, package: str, at: str = "") -> str:
        """Explain why a package is not in its desired state: the chain of causes with the root cause last, and the remedy.

        at: a time such as 2026-11-21T04:03:00Z, to explain the state at that time instead of now.
        """
        moment = parse_time(at) if at else None
        if at and moment is None:
            raise ToolInputError(f"at: {at[:100]!r}: expected a time like 2026-11-21T04:03:00Z")

        async def text(client: DebugClient) -> str:
            return (await why_text(client, package, _TEXT, datetime.now(UTC), moment))[0]

        return await self._ask(text)

    async def history(self, package: str, everything: bool = False) -> str:  # noqa: FBT001, FBT002 - a parameter of a tool
        """List the decisions about a package, oldest first, each with its cause and the state before and after it.

        everything: include events that only carry out an earlier decision.
        """
        return await self._ask(lambda client: history_text(client, package, "table", None, everything=everything))

    async def diff(self, package: str) -> str:
        """Show what the next apply of a package would change in the cluster, object by object. Nothing is changed."""

        async def text(client: DebugClient) -> str:
            found = await client.difference(package)
            if found is None:
                raise await no_such_package(client, package)
            if found.problem:
                raise DifferenceProblemError(
                    f"package {package!r}: cannot tell what the next apply would change: {found.problem}"
                )
            return "\n".join([*difference_lines(found), *summary_lines(found)])

        return await self._ask(text)

    async def graph(self, package: str = "") -> str:
        """List packages with their states and dependencies, in the order in which they start.

        package: only this one, and the packages that are related to it, directly or through other packages.
        """

        async def text(client: DebugClient) -> str:
            return draw(await fetch_graph(client, package or None), _TEXT, None, UNICODE)

        return await self._ask(text) or "no packages"

    async def plan(self, files: list[str], packages: str, kubernetes_version: str = "") -> str:
        """Find out, without a cluster, which packages would be enabled if some manifests were applied, in which order they would
        start, and why others would not be enabled.

        files: manifests of Applications and Modules, or folders of them. packages: the folder of packages. Both are below the
        folder that the user allowed.
        """
        if not files:
            raise ToolInputError("files: name at least one file or folder")
        return _cut(await self._planned([*map(self._inside, files)], self._inside(packages), kubernetes_version))

    def _inside(self, name: str) -> Path:
        """Return the path of a file. Raises ToolInputError if the file is not below the only folder that may be read."""
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root):
            raise ToolInputError(f"{name[:200]!r}: not below {self._root}, the only folder that may be read (--root)")
        return path

    async def _ask(self, question: Callable[[DebugClient], Coroutine[object, None, str]]) -> str:
        import trio  # noqa: PLC0415 - as above

        return _cut(await trio.to_thread.run_sync(partial(_asked, self._socket, question)))


def make_server(tools: Tools) -> "MCPServer[object]":
    """Make the server. It needs the extra [mcp]."""
    from mcp.server import MCPServer  # noqa: PLC0415 - an extra has it
    from mcp.types import ToolAnnotations  # noqa: PLC0415

    import wharfinger  # noqa: PLC0415

    server: MCPServer[object] = MCPServer(
        "wharfinger", version=wharfinger.__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    for each in (tools.why, tools.plan, tools.graph, tools.history, tools.diff):
        tool = _with_tool_errors(cast("_Tool", each))
        server.add_tool(tool, name=each.__name__, annotations=reads, structured_output=False)
    return server


class _Tool(Protocol):
    """A tool, as the server calls it."""

    def __call__(self, *args: object, **named: object) -> Awaitable[str]: ...


def _with_tool_errors(tool: _Tool) -> _Tool:
    """Wrap a tool so that a DebugError is reported to the client as a ToolError."""
    from functools import wraps  # noqa: PLC0415

    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415

    @wraps(tool)
    async def reporting(*args: object, **named: object) -> str:
        try:
            return await tool(*args, **named)
        except DebugError as error:
            raise ToolError(str(error)) from error

    return reporting


def _asked(socket: Path, question: Callable[[DebugClient], Coroutine[object, None, _T]]) -> _T:
    return run_without_loop(question(DebugClient(socket)))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n… {len(text) - MAX_CHARS} more characters"
