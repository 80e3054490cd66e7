"""The commands of ``wharfinger hook``, which run and inspect the hooks of a package on a laptop, without a cluster.

``hook run`` is in :mod:`~wharfinger.hooks.author.run_command`. ``hook config`` reads the configuration of one hook, or of all
hooks of a package. It compiles the filters, and prints the configuration as the daemon understands it. ``hook context`` prints
sample contexts for a hook. ``hook shell-lib`` prints the folder of the library for hooks in bash, or installs it.
"""

import argparse
import os
from pathlib import Path
from typing import cast

import trio

from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.formats.option_values import path_option
from wharfinger.hooks.author.local_package import check_filters, hook_files_of
from wharfinger.hooks.author.printing import add_output, refuse, rendered, say, tell
from wharfinger.hooks.author.run_command import add_run
from wharfinger.hooks.author.sample_contexts import sample_contexts
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.document import config_document
from wharfinger.hooks.containment.hook_environment import AskedVariable, add_environment_option, hook_environment
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.discovery import read_hooks
from wharfinger.hooks.running.hook_files import hook_file
from wharfinger.hooks.shell_library import FOLDER as SHELL_FOLDER
from wharfinger.hooks.shell_library import install
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.packages.errors import PackageError


def add_hook(parser: argparse.ArgumentParser) -> None:
    """Add the commands `wharfinger hook run|config|context|shell-lib`."""
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    add_run(commands)
    _add_config(commands)
    _add_context(commands)
    _add_shell_library(commands)


def _add_config(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    config = commands.add_parser(
        "config",
        help="print the configuration of a hook, or of all hooks of a package",
        description="Run one hook, or all hooks of a package, with --config, and print their configurations as the daemon "
        "understands them, with all defaults. If a binding has a group, its list of snapshots includes the snapshots of the "
        "whole group. The filters of the bindings are compiled, too. If an executable in a package's folder contains several "
        "hooks, all of them are included. Exit code 0: all configurations are valid; 1: a configuration is refused.",
    )
    config.add_argument("path", type=path_option, metavar="FILE|FOLDER", help="the hook, or the package's folder")
    config.add_argument("--global", action="store_true", dest="is_global", help="treat the hooks as global hooks")
    add_environment_option(config)
    add_output(config, "yaml (default) or json")
    config.set_defaults(handler=_config)


def _add_context(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    context = commands.add_parser(
        "context",
        help="print sample contexts for each binding of a hook",
        description="Run a hook with --config, and print a sample of the binding context for each event that can trigger "
        "the hook. `wharfinger hook run --context` reads this output.",
    )
    context.add_argument("executable", type=path_option, metavar="EXECUTABLE", help="the hook")
    context.add_argument("--binding", metavar="NAME", help="print only the contexts of this binding")
    context.add_argument(
        "--type",
        metavar="TYPE",
        help="print only contexts of this type, such as Synchronization, Event, Schedule, Group or Validating",
    )
    context.add_argument("--global", action="store_true", dest="is_global", help="treat the hook as a global hook")
    add_environment_option(context)
    add_output(context, "yaml (default) or json")
    context.set_defaults(handler=_context)


def _add_shell_library(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    library = commands.add_parser(
        "shell-lib",
        help="print the folder of the library for hooks in bash, or install it",
        description="Print the folder that contains shell_lib.sh, a library of functions for hooks in bash. Hooks that "
        "wharfinger runs find this folder in $FRAMEWORK_DIR. With --install, write the library below the root folder of an "
        "image, to the paths where hooks look for it, and print the path of each file.",
    )
    library.add_argument(
        "--install",
        type=path_option,
        metavar="ROOT",
        help="write shell_lib.sh, and the files that it loads, below this root folder",
    )
    library.set_defaults(handler=_shell_library)


def _config(args: argparse.Namespace) -> int:
    path, scope = cast("Path", args.path), _scope(args)
    document, errors = trio.run(_ask_package if path.is_dir() else _ask_one, path, scope, _reader(args))
    for error in errors:
        refuse(error)
    if document:
        _print(document, cast("str", args.output))
    return 1 if errors else 0


async def _ask_one(path: Path, scope: HookScope, reader: ProcessConfigReader) -> tuple[JsonObject, list[Exception]]:
    """Return the configuration of one hook, and its errors."""
    file = hook_file(path)
    async with open_jq_pool(None, workers=1) as filters:
        try:
            (hook,) = await read_hooks(file, reader, scope)
            await check_filters(hook, filters)
        except HookError as error:
            return {}, [error]
    return config_document(hook.config), []


async def _ask_package(path: Path, scope: HookScope, reader: ProcessConfigReader) -> tuple[JsonObject, list[Exception]]:
    """Return the configurations of a package's hooks, and the errors of those hooks that have no valid configuration."""
    try:
        files = await trio.to_thread.run_sync(hook_files_of, path, scope)
    except (HookError, PackageError, OSError) as error:
        return {}, [error]
    for warning in files.warnings:
        tell(f"warning: {warning}")
    found: list[JsonValue] = []
    errors: list[Exception] = []
    async with open_jq_pool(None, workers=1) as filters:
        for file in files.hooks:
            try:
                for hook in await read_hooks(file, reader, scope):
                    await check_filters(hook, filters)
                    found.append({"name": hook.name, "kind": hook.kind.value, "config": config_document(hook.config)})
            except HookError as error:
                errors.append(error)
    return {"hooks": found}, errors


def _context(args: argparse.Namespace) -> int:
    made = trio.run(_samples, cast("Path", args.executable), _scope(args), _reader(args))
    if isinstance(made, Exception):
        return refuse(made)
    wanted: list[JsonValue] = [
        context
        for context in made
        if args.binding in (None, find_str(context, "binding")) and args.type in (None, find_str(context, "type"))
    ]
    if not wanted:
        return refuse(
            HookError(str(args.executable), "the hook has no such binding; `wharfinger hook config` lists its bindings")
        )
    return _print(wanted, cast("str", args.output))


async def _samples(path: Path, scope: HookScope, reader: ProcessConfigReader) -> tuple[JsonObject, ...] | Exception:
    async with open_jq_pool(None, workers=1) as filters:
        try:
            (hook,) = await read_hooks(hook_file(path), reader, scope)
            return await sample_contexts(hook.config, filters)
        except (HookError, FilterError) as error:
            return error


def _reader(args: argparse.Namespace) -> ProcessConfigReader:
    """Return a reader that gets the configurations of hooks as the daemon does."""
    asked = cast("list[AskedVariable]", args.hook_env)
    return ProcessConfigReader(environment=hook_environment(os.environ, asked).variables)


def _shell_library(args: argparse.Namespace) -> int:
    root = cast("Path | None", args.install)
    if root is None:
        say(f"{SHELL_FOLDER}\n")
        return 0
    try:
        for written in install(root):
            say(f"{written}\n")
    except OSError as error:
        return refuse(error)
    return 0


def _scope(args: argparse.Namespace) -> HookScope:
    return HookScope.GLOBAL if args.is_global else HookScope.PACKAGE


def _print(document: JsonValue, form: str) -> int:
    say(rendered(document, form))
    return 0
