"""Helpers that run one command, as a user types it, with an Inspector behind a real socket in this process."""

import argparse
import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import cast

import trio

from wharfinger.debug.server.server import open_debug_server
from wharfinger.runtime.inspector import Inspector

Add = Callable[[argparse.ArgumentParser], None]
Handler = Callable[[argparse.Namespace], int]


def parsed(add: Add, words: list[str], path: Path) -> argparse.Namespace:
    """Return the parsed arguments of a command, to which the path of the socket is added."""
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args([*words, "--socket", str(path)])


def captured(call: Callable[[], int]) -> tuple[int, str, str]:
    """Make a call, and return its exit code, stdout and stderr."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = call()
    return code, out.getvalue(), err.getvalue()


async def typed(
    add: Add, words: list[str], inspector: Inspector, folder: Path, *, handler: Handler | None = None
) -> tuple[int, str, str]:
    """Run a command, and return its exit code, stdout and stderr. ``handler``, if given, replaces the command's handler."""
    path = folder / "s"
    args = parsed(add, words, path)
    run = handler or cast("Handler", args.handler)
    async with open_debug_server(path, inspector):
        return await trio.to_thread.run_sync(lambda: captured(lambda: run(args)))
