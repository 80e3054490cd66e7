"""The command line, and the only module that puts the parts (the folders of this package) together.

``command_table.py`` lists the commands, each with the module of a part that implements it. Only the module of the given command
is imported (``wharfinger version`` imports none). The module contains a function that adds the command's arguments to a parser.
This function also sets the parser's default ``handler``, which runs the command and returns the exit code.

If a part needs a function of another part that it must not import, this module passes the function to it.

The usual exit codes are 0 for success, 1 for a failure, 2 for wrong usage, 129 after SIGHUP, 130 after Ctrl-C and 143 after
SIGTERM. The help of a command describes the exit codes that have another meaning for this command.
"""

import signal

if _BY_PYTHON := signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the process without a traceback

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, cast

import wharfinger
from wharfinger.command_table import COMMANDS, LIVE_DIFF, Command
from wharfinger.completion import COMPLETERS, add_completion
from wharfinger.interruption import Interruption
from wharfinger.standard_streams import StdoutError, drop_stdout, name_stdout_in_errors, open_closed_streams

if TYPE_CHECKING:
    from datetime import datetime

    from wharfinger.cluster.api.client import ClusterClient
    from wharfinger.formats.json.value import JsonObject
    from wharfinger.kube.access_rules import JudgedRequest
    from wharfinger.packages.author.package_check import CheckFinding
    from wharfinger.packages.definition.conversions import JqRunner
    from wharfinger.runtime.inspector import HistorySnapshot, Inspector
    from wharfinger.runtime.scheduler_details import ExplanationSnapshot

if _BY_PYTHON:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_PROGRAM: Final = "wharfinger"
_WRONG_WORD: Final = re.compile(
    r"(?P<argument>argument .*): invalid choice: '(?P<word>[^']*)' \(choose from (?P<known>.*)\)\Z", re.DOTALL
)
_LONGEST_GUESS: Final = 40
_MEANT: Final = {
    **dict.fromkeys(("list", "ls", "status", "ps", "show"), "get packages"),
    "explain": "why",
    **dict.fromkeys(("timeline", "journal"), "history"),
    **dict.fromkeys(("template", "manifest"), "render"),
    **dict.fromkeys(("kustomize", "compile"), "build"),
    **dict.fromkeys(("metrics", "stats"), "statistics"),
    **dict.fromkeys(("start", "daemon", "serve"), "run"),
    **{word: f"package {word}" for word in ("push", "lint", "inspect")},
    "queue": "queues dump",
    "config": "hook config",
}
"""Words that users of other programs may type as a command, and the commands that do the same here."""

_DAEMON_S: Final = 5.0
"""The time that `doctor` waits for a daemon."""

EXIT_FAILED: Final = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    open_closed_streams()
    if "_ARGCOMPLETE" in os.environ and argv is None:
        _complete(os.environ.get("COMP_LINE", ""))
    name_stdout_in_errors()
    with Interruption() as interruption:
        code = _guarded(argv, interruption)
    try:
        sys.stderr.flush()
    except BrokenPipeError:
        # The reader of the log is gone. Python would exit with 120, because the rest of the log cannot be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code


def _guarded(argv: Sequence[str] | None, interruption: Interruption) -> int:
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()  # flushed now, while an error can still be reported
    except KeyboardInterrupt:
        return interruption.exit_code
    except BaseExceptionGroup as group:
        # If an exception ends a command, the command's nurseries wrap the exception in groups.
        if group.split(KeyboardInterrupt)[1] is None:
            return interruption.exit_code
        if group.split(StdoutError)[1] is None:
            return _stdout_failed(_first_of(group))
        raise
    except StdoutError as error:
        return _stdout_failed(error)
    except BrokenPipeError:
        # The reader (head, less) has ended, so no more output is possible.
        drop_stdout()
        return EXIT_FAILED


def _first_of(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _stdout_failed(error: BaseException) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        drop_stdout()
    sys.stderr.write(f"error: {error}\n")
    return EXIT_FAILED


def _run(arguments: list[str]) -> int:
    # The parsers of the other commands are only needed for the list of commands. Making them takes longer than a
    # request to a daemon.
    known = arguments[:1] if any(arguments[:1] == [command.name] for command in COMMANDS) else ()
    parser = build_parser(asked_for=_first_word(arguments), is_live=is_live_diff(arguments), only=known)
    args, rest = parser.parse_known_args(arguments)
    # argparse takes an optional NAME only next to its subcommand; users write it last: `get packages -o yaml NAME`.
    if len(rest) == 1 and not rest[0].startswith("-") and getattr(args, "name", "") is None:
        args.name, rest = rest[0], []
    if rest:
        # The command's own parser prints the usage that the user needs; argparse itself would print that of the program.
        used = cast("argparse.ArgumentParser", getattr(args, "command_parser", parser))
        used.error(f"unrecognized arguments: {' '.join(rest)}{_hint(args, rest, used)}")
    handler = cast("Callable[[argparse.Namespace], int] | None", getattr(args, "handler", None))
    if handler is None:
        parser.print_help()
        return 2
    return handler(args)


def _hint(args: argparse.Namespace, rest: Sequence[str], used: argparse.ArgumentParser) -> str:
    """Return a hint for the error message: what the user probably meant by the unknown arguments ``rest``, or ""."""
    import difflib  # noqa: PLC0415 - seldom needed

    if rest[0].startswith(("-n", "--namespace")) and hasattr(args, "name"):
        return "; an Application is named NAMESPACE.NAME here"
    if used.prog == f"{_PROGRAM} {LIVE_DIFF.name}" and not rest[0].startswith("-") and getattr(args, "name", None):
        return f"; to compare trees: `{used.prog} {args.name} --against {rest[0]}`"
    options = re.findall(r"--[a-z][a-z-]*", used.format_usage())
    word = rest[0].partition("=")[0][:_LONGEST_GUESS]
    close = difflib.get_close_matches(word, options, n=1) if word.startswith("--") else []
    return f"; did you mean {close[0]}?" if close else ""


class _Parser(argparse.ArgumentParser):
    """A parser whose error for a wrong word suggests the nearest known word. Its subparsers have this class, too."""

    def error(self, message: str) -> NoReturn:
        """Print the error, and exit. For an unknown word, suggest the nearest known word; if no known word is near, list all
        known words.

        The exit code is 2; only `wharfinger diff` exits with 1, because its code 2 means that there are differences.
        """
        import difflib  # noqa: PLC0415 - seldom needed

        wrong = _WRONG_WORD.match(message)
        if wrong is not None and len(wrong["word"]) <= _LONGEST_GUESS:
            word, known = wrong["word"], re.findall(r"'([^']*)'", wrong["known"])
            message = f"{wrong['argument']}: there is no {word!r}; known are {', '.join(map(repr, known))}"
            close = _MEANT.get(word.lower(), "") if self.prog == _PROGRAM else ""
            close = close or next(iter(difflib.get_close_matches(word.lower(), known, n=1)), "")
            if close:
                message = f"{wrong['argument']}: no {word!r} here; did you mean {close!r}?"
        self.print_usage(sys.stderr)
        code = EXIT_FAILED if self.prog == f"{_PROGRAM} {LIVE_DIFF.name}" else 2
        self.exit(code, f"{self.prog}: error: {message}\n")


def is_live_diff(arguments: Sequence[str]) -> bool:
    """Return whether the command is `diff NAME` without ``--against``. This form of `diff` asks a running daemon."""
    words = [word for word in arguments if not word.startswith("-")]
    return words[:1] == ["diff"] and len(words) > 1 and not any(word.startswith("--ag") for word in arguments)


def build_parser(asked_for: str | None, *, is_live: bool = False, only: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser. Only the command ``asked_for`` gets its arguments; ``"*"`` stands for every command.

    If ``is_live`` is true, `diff` gets the arguments of the form that asks a running daemon. ``only`` names the commands that the
    parser knows; if it is empty, the parser knows all commands.
    """
    parser = _Parser(
        prog=_PROGRAM,
        description="The package runtime for Kubernetes.",
        epilog="`wharfinger COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=version_line())
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for command in COMMANDS:
        if only and command.name not in only:
            continue
        sub = commands.add_parser(command.name, help=command.help, description=command.help.capitalize() + ".")
        sub.set_defaults(command_parser=sub)
        if asked_for in {command.name, "*"}:
            _fill(LIVE_DIFF if command.name == LIVE_DIFF.name and is_live else command, sub)
    version = commands.add_parser("version", help="print the version", description="Print the version.")
    version.set_defaults(handler=_print_version, command_parser=version)
    about = "print a shell completion script"
    add_completion(commands.add_parser("completion", help=about), _PROGRAM)
    return parser


def version_line() -> str:
    """Return a line like ``wharfinger 0.1.0 (Python 3.11.7)``."""
    return f"wharfinger {wharfinger.__version__} (Python {sys.version.split()[0]})"


def _first_word(arguments: Sequence[str]) -> str | None:
    return next((word for word in arguments if not word.startswith("-")), None)


def _fill(command: Command, parser: argparse.ArgumentParser) -> None:
    module = importlib.import_module(f"wharfinger.{command.part}.{command.module}")
    add = cast("Callable[[argparse.ArgumentParser], None]", getattr(module, "add_" + command.name.replace("-", "_")))
    if command.name == "run":
        parser.set_defaults(
            serve_inspector=_open_debug_server, serve_metrics=_open_metrics, chaos_problem=_chaos_problem
        )
    if command.name in COMPLETERS:
        parser.set_defaults(complete_name=COMPLETERS[command.name])
    if command.name == "doctor":
        parser.set_defaults(ask_daemon=_ask_daemon)
    if command.name == "check":
        parser.set_defaults(open_server=_open_server)
    if command.name == "package":
        parser.set_defaults(
            open_jq=_open_jq, check_hooks=_check_hooks, more_actions=(_add_lint, _add_rights, _add_verify)
        )
    if command.name == "mcp":
        parser.set_defaults(planned=_planned)
    if command.name in ("why", "history"):
        parser.set_defaults(recorded_why=_recorded_why, recorded_history=_recorded_history)
    add(parser)


def _recorded_why(path: Path, name: str, at: "datetime") -> "ExplanationSnapshot | None":
    """Explain a package's state at a recorded time; return None if the recording does not reach back so far. Raises
    RecordingAnswerError.

    The function is passed to the part ``debug``, which must not import recordings.
    """
    from wharfinger.debug.commands import RecordingAnswerError  # noqa: PLC0415 - loaded only with --recording
    from wharfinger.runtime.recording.commands import explanation_from  # noqa: PLC0415
    from wharfinger.runtime.recording.recordings import RecordingError  # noqa: PLC0415

    try:
        return explanation_from(path, name, at)
    except RecordingError as error:
        raise RecordingAnswerError(str(error)) from error


def _recorded_history(path: Path, name: str) -> "HistorySnapshot | None":
    """Return the events of a package in a recording; None if the recording has no events of the package. Raises
    RecordingAnswerError.

    The function is passed to the part ``debug``, which must not import recordings.
    """
    from wharfinger.debug.commands import RecordingAnswerError  # noqa: PLC0415 - loaded only with --recording
    from wharfinger.runtime.recording.commands import history_from  # noqa: PLC0415
    from wharfinger.runtime.recording.recordings import RecordingError  # noqa: PLC0415

    try:
        return history_from(path, name)
    except RecordingError as error:
        raise RecordingAnswerError(str(error)) from error


async def _planned(files: list[Path], folder: Path, kubernetes_version: str) -> str:
    """Return the plan for packages in files, as text. Raises ToolInputError.

    The function is passed to the part ``debug``, which must not import plans.
    """
    from wharfinger.debug.mcp_command import ToolInputError  # noqa: PLC0415 - loaded only for `mcp`
    from wharfinger.packages.errors import StoreError  # noqa: PLC0415
    from wharfinger.runtime.plan.commands import planned_text  # noqa: PLC0415
    from wharfinger.runtime.plan.input import PlanInputError  # noqa: PLC0415

    try:
        return await planned_text(files, folder, kubernetes_version)
    except PlanInputError as error:
        raise ToolInputError("; ".join(error.lines)) from error
    except (StoreError, OSError) as error:
        raise ToolInputError(str(error)) from error


@asynccontextmanager
async def _open_debug_server(path: Path, inspector: "Inspector") -> AsyncIterator[None]:
    """Serve the daemon's debug socket. Raises StartError.

    The function is passed to the part ``runtime``, which must not import ``debug``.
    """
    from wharfinger.debug.errors import DebugSocketError  # noqa: PLC0415
    from wharfinger.debug.server.activation import inherited_listener  # noqa: PLC0415 - loaded by the daemon only
    from wharfinger.debug.server.server import open_debug_server  # noqa: PLC0415
    from wharfinger.runtime.controllers.state_dir import StartError  # noqa: PLC0415

    async with AsyncExitStack() as opened:
        try:
            server = open_debug_server(path, inspector, listener=inherited_listener(os.environ))
            await opened.enter_async_context(server)
        except DebugSocketError as error:
            raise StartError(str(error)) from error
        yield


@asynccontextmanager
async def _open_metrics(address: str, inspector: "Inspector") -> AsyncIterator[None]:
    """Serve the daemon's metrics on a TCP address of this machine. Raises StartError.

    The function is passed to the part ``runtime``, which must not import ``debug``.
    """
    from wharfinger.debug.errors import MetricsAddressError  # noqa: PLC0415 - loaded by the daemon only
    from wharfinger.debug.server.metrics_listener import open_metrics_listener, read_metrics_address  # noqa: PLC0415
    from wharfinger.runtime.controllers.state_dir import StartError  # noqa: PLC0415

    async with AsyncExitStack() as opened:
        try:
            listener = open_metrics_listener(read_metrics_address(address), inspector)
            await opened.enter_async_context(listener)
        except MetricsAddressError as error:
            raise StartError(f"--metrics-address: {error}") from error
        yield


def _ask_daemon(path: Path) -> str:
    """Return the version of the daemon that listens on a debug socket. Raises DaemonAbsentError.

    The function is passed to the part ``runtime``, which must not import ``debug``.
    """
    from wharfinger.debug.client.client import DebugClient  # noqa: PLC0415 - only `doctor` needs it
    from wharfinger.debug.client.exchange import run_without_loop  # noqa: PLC0415
    from wharfinger.debug.errors import DebugError  # noqa: PLC0415
    from wharfinger.runtime.daemon.doctor import DaemonAbsentError  # noqa: PLC0415

    try:
        return run_without_loop(DebugClient(path, wait_s=_DAEMON_S).daemon()).version
    except DebugError as error:
        raise DaemonAbsentError(str(error)) from error


@asynccontextmanager
async def _open_jq() -> AsyncIterator["JqRunner"]:
    """Open a pool with one jq worker. The function is passed to the part ``packages``, which must not import ``hooks``."""
    from wharfinger.hooks.watching.jq_pool import open_jq_pool  # noqa: PLC0415 - only `package check` needs it

    async with open_jq_pool(None, workers=1) as pool:
        yield pool


@asynccontextmanager
async def _open_server() -> AsyncIterator["ClusterClient"]:
    """Open an empty API server in memory, and yield a client of it.

    The function is passed to the part ``offline``, which must not import ``control_plane``.
    """
    from wharfinger.cluster.api.connection import Connection, bearer  # noqa: PLC0415 - only `check` needs it
    from wharfinger.cluster.api.errors import ClusterError  # noqa: PLC0415
    from wharfinger.kube.embedded_extra import missing_libraries  # noqa: PLC0415

    if problem := missing_libraries():
        raise ClusterError(problem)
    from wharfinger.cluster.api.http_client import open_client  # noqa: PLC0415
    from wharfinger.control_plane.service import LOCAL, open_control_plane  # noqa: PLC0415

    async with (
        open_control_plane() as server,
        open_client(Connection(LOCAL, bearer("")), transport=server.transport()) as client,
    ):
        yield client


def _check_hooks(folder: Path) -> "tuple[CheckFinding, ...]":
    """Return what is wrong with the files of a package's hooks.

    The function is passed to the part ``packages``, which must not import ``hooks``.
    """
    from wharfinger.hooks.author.local_package import check_hook_files  # noqa: PLC0415 - only `package check` needs it

    return check_hook_files(folder)


def _add_lint(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `package lint`. It is added here and not in the folder ``packages``, because it also checks hooks, and
    ``packages`` must not import ``hooks``.
    """
    from wharfinger.hooks.author.lint_command import add_lint  # noqa: PLC0415 - only `package` needs it

    add_lint(actions, _refused_fields)


def _add_rights(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `package rights`. It is added here and not in the folder ``packages``, because it runs a daemon, and
    ``packages`` must not import ``runtime``.
    """
    from wharfinger.runtime.receipts.commands import add_rights  # noqa: PLC0415 - only `package` needs it

    add_rights(actions, _open_judge)


def _add_verify(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `package verify`.

    It reads a PackageRepository with a function of ``runtime``, which is passed here, because ``packages`` must not import
    ``runtime``.
    """
    from wharfinger.packages.verify_command import add_verify  # noqa: PLC0415 - only `package` needs it, and cryptography
    from wharfinger.runtime.resources.repository_policy import policy_for_command  # noqa: PLC0415

    add_verify(actions, policy_for_command)


@asynccontextmanager
async def _open_judge(folder: Path, audit: "Callable[[JudgedRequest], None]") -> AsyncIterator[Path]:
    """Run an API server, and yield the path of its kubeconfig.

    The server calls ``audit`` for every request, with the information whether the request was allowed. ``_open_judge`` is
    passed to the folder ``runtime``, which must not import ``control_plane``.
    """
    from wharfinger.control_plane.access.kubeconfig_file import new_token  # noqa: PLC0415 - only `package rights` needs it
    from wharfinger.control_plane.serving import parse_address, serve_control_plane  # noqa: PLC0415
    from wharfinger.kube.embedded_extra import missing_libraries  # noqa: PLC0415
    from wharfinger.packages.errors import PackageError  # noqa: PLC0415

    if problem := missing_libraries():
        raise PackageError(problem)
    path = folder / "kubeconfig"
    async with serve_control_plane(parse_address("127.0.0.1:0"), path, new_token()) as serving:
        serving.control_plane.handler.audit = audit
        yield path


def _refused_fields(definition: "JsonObject") -> "list[tuple[str, str]]":
    """Return the fields of a CRD that a server would refuse, each with the reason.

    The function is passed to the part ``hooks``, which must not import ``control_plane``.
    """
    # Imported here, because most packages have no CRDs. For these packages, `package lint` need not load the API server.
    from wharfinger.kube.embedded_extra import missing_libraries  # noqa: PLC0415
    from wharfinger.packages.errors import PackageError  # noqa: PLC0415

    if problem := missing_libraries():
        raise PackageError(f"definitions in crds/ cannot be checked: {problem}")
    from wharfinger.control_plane.definition_check import refused_fields  # noqa: PLC0415

    return refused_fields(definition)


def _chaos_problem(rules: str) -> str:
    """Return what is wrong with the rules of ``--chaos``, or "".

    The function is passed to the part ``runtime``, which must not import ``control_plane``.
    """
    from wharfinger.control_plane.commands import faults_problem  # noqa: PLC0415 - only `run --chaos` needs it

    return faults_problem(rules)


def _print_version(_args: argparse.Namespace) -> int:
    print(version_line())
    return 0


def _complete(line: str) -> None:
    """Print the completions for a shell's command line, and exit. The shell starts this program when the user presses Tab."""
    import argcomplete  # noqa: PLC0415

    words = line.split()[1:]
    parser = build_parser(asked_for=_first_word(words), is_live=is_live_diff(words))
    argcomplete.autocomplete(parser, always_complete_options=False)


if __name__ == "__main__":
    sys.exit(main())
