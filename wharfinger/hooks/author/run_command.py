"""The command ``wharfinger hook run``: run one hook on a laptop, without a cluster, as the daemon would.

The hook's own output is copied to stderr while the hook runs. Its results are written to stdout as one document, or, with
``--diff``, as the difference between the values before and after the run. So other programs can read and compare the results.
Nothing is applied.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object
from wharfinger.formats.option_values import path_option, time_option
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.hooks.author.local_package import OwnValues, sample_identity, section_of_hook, values_of_hook
from wharfinger.hooks.author.printing import add_output, refuse, rendered, say, tell
from wharfinger.hooks.containment.hook_environment import AskedVariable, add_environment_option, hook_environment
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.hook_files import hook_file
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.run_report import ANSWERS, diff_of, document_of, report_on
from wharfinger.hooks.running.runner import HookOutcome, HookRun
from wharfinger.packages.errors import PackageError
from wharfinger.process.command import Limits

DEFAULT_TIMEOUT_S: Final = 300.0
EXIT_INTERRUPTED: Final = 130
MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
ON_STARTUP: Final[JsonObject] = {"binding": "onStartup"}
STANDARD_INPUT: Final = Path("-")


def add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command ``hook run EXECUTABLE`` and its options."""
    run = commands.add_parser(
        "run",
        help="run one hook and print its results",
        description="Run one hook as the daemon would, in the hook's own folder. The output of the hook is copied to "
        "stderr. The results of the hook are printed to stdout as one document: patches of objects and values, the values "
        "after these patches, metrics, and responses to webhook requests. Nothing is applied. Exit code 0: the hook "
        "succeeded; 1: the hook failed, or its values patch is refused; 130: ended by Ctrl-C, SIGTERM or SIGHUP.",
    )
    run.add_argument("executable", type=path_option, metavar="EXECUTABLE", help="the hook")
    run.add_argument(
        "--context",
        type=path_option,
        metavar="FILE",
        help="a YAML or JSON file with the binding contexts: a list, or one object; - is standard input; `wharfinger hook "
        "context` prints samples (default: the context of onStartup)",
    )
    run.add_argument(
        "--values",
        type=path_option,
        metavar="FILE",
        help="a YAML or JSON file with the values (default: the values of the package that contains the hook: its "
        "values.yaml and the defaults of its schemas, overridden by --config-values)",
    )
    run.add_argument(
        "--config-values",
        type=path_option,
        metavar="FILE",
        help="a YAML or JSON file with the user's settings (default: no settings)",
    )
    run.add_argument(
        "--cwd", type=path_option, metavar="FOLDER", help="the folder to run in (default: the hook's own folder)"
    )
    run.add_argument(
        "--batch",
        metavar="INDEX",
        type=_index,
        help="for an executable with several hooks: run only one of them; INDEX is its position, from 0, in the list that "
        "`EXECUTABLE hook config` prints",
    )
    run.add_argument(
        "--timeout",
        type=_seconds,
        default=DEFAULT_TIMEOUT_S,
        metavar="TIME",
        help="longest time for the run, such as 90s or 5m; after it, the hook and all processes that it started are killed; a "
        "number without a unit means seconds (default: %(default)g)",
    )
    run.add_argument("--diff", action="store_true", help="print only what the hook changed in the values")
    add_environment_option(run)
    add_output(run, "yaml (default) or json")
    run.set_defaults(handler=_run)


def _run(args: argparse.Namespace) -> int:
    try:
        run = _read_run(args)
        given = hook_environment(os.environ, cast("list[AskedVariable]", args.hook_env)).variables
        environment = {**sample_identity(cast("Path", args.executable)), **given}
        outcome = trio.run(_execute, run, cast("float", args.timeout), environment)
    except PackageError as error:
        return refuse(f"the values of the hook's package: {error}; correct the package, or give values with --values")
    except (FormatError, OSError) as error:
        return refuse(error)
    if outcome is None:
        refuse("interrupted; the hook and all processes that it started were ended")
        return EXIT_INTERRUPTED
    if isinstance(outcome, HookError):
        return refuse(outcome)
    report = report_on(run, outcome, section_of_hook(cast("Path", args.executable)))
    text = diff_of(run, report) if args.diff else rendered(document_of(run, report), cast("str", args.output))
    say(text)
    for problem in report.problems:
        refuse(problem)
    if not outcome.succeeded:
        # The hook's own output has the reason.
        refuse(f"the hook failed: {outcome.ending}; its values patches are dropped")
    return 0 if outcome.succeeded and not report.problems else 1


def _read_run(args: argparse.Namespace) -> HookRun:
    file = hook_file(cast("Path", args.executable))
    cwd, index = cast("Path | None", args.cwd), cast("int | None", args.batch)
    config_values = None if args.config_values is None else _object(cast("Path", args.config_values))
    own = OwnValues({}, {})
    if args.values is None:
        own = values_of_hook(cast("Path", args.executable), config_values or {})
    return HookRun(
        name=file.name,
        executable=file.executable,
        argv=file.argv if index is None else (*file.argv, "hook", "run", str(index)),
        environment=file.environment,
        cwd=file.cwd if cwd is None else cwd.absolute(),
        contexts=_contexts(cast("Path | None", args.context)),
        values=own.values if args.values is None else _object(cast("Path", args.values)),
        config_values=own.config_values if config_values is None else config_values,
        answers=ANSWERS,
    )


async def _execute(run: HookRun, timeout_s: float, environment: Mapping[str, str]) -> HookOutcome | HookError | None:
    """Return the outcome or the error; None if a signal ended the run."""
    limits = Limits(wall_s=timeout_s, stdout_bytes=MAX_OUTPUT_BYTES)
    outcome: HookOutcome | HookError | None = None
    with (
        tempfile.TemporaryDirectory(prefix="wharfinger-hook-") as scratch,
        trio.open_signal_receiver(*_ending_signals()) as signals,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_signal, signals, nursery.cancel_scope)
            try:
                outcome = await ProcessHookRunner(Path(scratch), limits, environment=environment).run(
                    replace(run, on_line=tell)
                )
            except HookError as error:
                outcome = error
            nursery.cancel_scope.cancel()
    return outcome


def _ending_signals() -> list[signal.Signals]:
    """Return the signals that end the run. SIGHUP is not among them if it is ignored, as under nohup."""
    is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if is_ignored else [signal.SIGHUP])]


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


def _object(path: Path) -> JsonObject:
    found = _document_in(path)
    return {} if found is None else as_object(found, str(path))


def _document_in(path: Path) -> JsonValue:
    if path == STANDARD_INPUT:
        return read_yaml(sys.stdin.buffer.read(MAX_OUTPUT_BYTES), what="standard input")
    return read_yaml(path.read_bytes(), what=str(path))


def _seconds(text: str) -> float:
    seconds = time_option(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; give one above 0, such as 30s")
    return seconds


def _index(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise argparse.ArgumentTypeError(f"{text!r} is not the index of a hook; give a number of 0 or more")
    return int(text)
