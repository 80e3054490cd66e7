"""``wharfinger hook``: one hook on a laptop, with no cluster, exactly as the daemon would ask and run it.

``hook run``: the hook's own output goes to stderr as it comes, its results to stdout as one document, so that both can be piped
and compared. Nothing is applied anywhere. ``hook config``: what the hook asks for, as the daemon understands it.
"""

import argparse
import math
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, as_object, encode_json
from wharfinger.formats.yaml_reader import read_yaml
from wharfinger.formats.yaml_writer import write_yaml
from wharfinger.hooks.config import HookConfig
from wharfinger.hooks.config_document import config_document
from wharfinger.hooks.discovery import ProcessConfigReader, read_hook
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.hook_files import hook_file
from wharfinger.hooks.process_runner import ProcessHookRunner
from wharfinger.hooks.runner import HookOutcome, HookRun
from wharfinger.process.command import Limits

DEFAULT_TIMEOUT_S: Final = 300.0
EXIT_INTERRUPTED: Final = 130
MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
ON_STARTUP: Final[JsonObject] = {"binding": "onStartup"}


def add_hook(parser: argparse.ArgumentParser) -> None:
    """`wharfinger hook run EXECUTABLE` and `wharfinger hook config EXECUTABLE`."""
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    _add_run(commands)
    config = commands.add_parser(
        "config",
        help="print what a hook asks for",
        description="Run one hook with --config, and print its configuration as the daemon understands it: every default "
        "filled in, groups merged. Exit code 0, or 1 where the configuration is refused.",
    )
    config.add_argument("executable", type=Path, metavar="EXECUTABLE", help="the hook")
    _add_output(config, "form of the configuration")
    config.set_defaults(handler=_config)


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    run = commands.add_parser(
        "run",
        help="run one hook and print its results",
        description="Run one hook as the daemon would, in the hook's own folder. What it prints goes to stderr as it comes; "
        "its results go to stdout as one document. Nothing is applied. "
        "Exit code 0 if the hook succeeded, 1 if not, 130 after Ctrl-C.",
    )
    run.add_argument("executable", type=Path, metavar="EXECUTABLE", help="the hook")
    run.add_argument(
        "--context",
        type=Path,
        metavar="FILE",
        help="binding contexts, YAML or JSON: a list, or one object (default: onStartup)",
    )
    run.add_argument("--values", type=Path, metavar="FILE", help="values, YAML or JSON (default: none)")
    run.add_argument("--config-values", type=Path, metavar="FILE", help="the user's own values (default: none)")
    run.add_argument("--cwd", type=Path, metavar="FOLDER", help="where it runs (default: the hook's own folder)")
    run.add_argument(
        "--timeout",
        type=_seconds,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help="the hook and all it started are killed after that (default: %(default)g)",
    )
    _add_output(run, "form of the results")
    run.set_defaults(handler=_run)


def _add_output(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help=purpose)


def _config(args: argparse.Namespace) -> int:
    file = hook_file(cast("Path", args.executable))

    async def ask() -> HookConfig | HookError:
        try:
            return (await read_hook(file, ProcessConfigReader())).config
        except HookError as error:
            return error

    found = trio.run(ask)
    if isinstance(found, HookError):
        return _refused(found)
    print(_rendered(config_document(found), cast("str", args.output)), end="")
    return 0


def _run(args: argparse.Namespace) -> int:
    try:
        outcome = trio.run(_execute, _read_run(args), cast("float", args.timeout))
    except (FormatError, OSError) as error:
        return _refused(error)
    if outcome is None:
        print("error: interrupted; the hook and all it started were ended", file=sys.stderr)
        return EXIT_INTERRUPTED
    if isinstance(outcome, HookError):
        return _refused(outcome)
    print(_rendered(_document(outcome), cast("str", args.output)), end="")
    if not outcome.succeeded:
        why = " ".join(outcome.exit_description.split())
        print(f"error: the hook failed: {why}; its values patches are dropped", file=sys.stderr)
        return 1
    return 0


def _refused(error: Exception) -> int:
    print(f"error: {error}", file=sys.stderr)
    return 1


def _read_run(args: argparse.Namespace) -> HookRun:
    file = hook_file(cast("Path", args.executable))
    cwd = cast("Path | None", args.cwd)
    return HookRun(
        name=file.name,
        executable=file.executable,
        argv=file.argv,
        environment=file.environment,
        cwd=file.cwd if cwd is None else cwd.absolute(),
        contexts=_contexts(cast("Path | None", args.context)),
        values=_object(cast("Path | None", args.values)),
        config_values=_object(cast("Path | None", args.config_values)),
    )


async def _execute(run: HookRun, timeout_s: float) -> HookOutcome | HookError | None:
    """The outcome, why there is none, or None when a signal came first."""

    def tell(line: str) -> None:
        with suppress(BrokenPipeError):  # nobody reads the log any more; the results still count
            print(line, file=sys.stderr, flush=True)

    limits = Limits(wall_s=timeout_s, stdout_bytes=MAX_OUTPUT_BYTES)
    outcome: HookOutcome | HookError | None = None
    with (
        tempfile.TemporaryDirectory(prefix="wharfinger-hook-") as scratch,
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_signal, signals, nursery.cancel_scope)
            try:
                outcome = await ProcessHookRunner(Path(scratch), limits).run(replace(run, on_line=tell))
            except HookError as error:
                outcome = error
            nursery.cancel_scope.cancel()
    return outcome


async def _cancel_on_signal(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()


def _contexts(path: Path | None) -> tuple[JsonObject, ...]:
    if path is None:
        return (ON_STARTUP,)
    found = _document_in(path)
    contexts = found if isinstance(found, list) else [found]
    if not contexts:
        raise FormatError(f"{path}: a hook is run with at least one binding context; leave --context out for onStartup")
    return tuple(as_object(context, f"{path}: context {number}") for number, context in enumerate(contexts, 1))


def _object(path: Path | None) -> JsonObject:
    found = None if path is None else _document_in(path)
    return {} if found is None else as_object(found, str(path))


def _document_in(path: Path) -> JsonValue:
    return read_yaml(path.read_bytes(), what=str(path))


def _document(outcome: HookOutcome) -> JsonObject:
    """The results; value patches of a failed run are dropped, as the daemon would drop them."""
    return {
        "succeeded": outcome.succeeded,
        "exit": outcome.exit_description,
        "objectPatches": [*outcome.object_patches],
        "valuesPatch": [*outcome.values_patch] if outcome.succeeded else [],
        "configValuesPatch": [*outcome.config_values_patch] if outcome.succeeded else [],
        "metrics": [*outcome.metrics],
        "usage": {
            "userSeconds": round(outcome.user_s, 6),
            "systemSeconds": round(outcome.system_s, 6),
            "maxRssBytes": outcome.max_rss_bytes,
        },
    }


def _rendered(document: JsonObject, form: str) -> str:
    if form == "yaml":
        with suppress(FormatError):  # what block style cannot say (nesting) is written as JSON, which is YAML too
            return write_yaml(document)
    return encode_json(document).decode() + "\n"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
