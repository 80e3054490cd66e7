"""The build of a path with the options of a command, for all offline commands."""

import sys

import trio

from wharfinger.formats.encodable import encodable
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.options import OfflineOptions
from wharfinger.offline.orchestrator.orchestrator import Tools, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.single import build_package, is_package
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.packages.errors import PackageError


class BuildError(Exception):
    """A path cannot be built at all: it cannot be read, or there is no place for files."""


def run_build(options: OfflineOptions) -> Result:
    """Build the path of the options. Raises BuildError."""
    result = trio.run(_build, options)
    if isinstance(result, BuildError):
        raise result
    return result


async def build_path(options: OfflineOptions, tools: Tools) -> Result | BuildError:
    """Return the result, or the error: one raised between the pools would come out of their nurseries in a group."""
    try:
        if await trio.to_thread.run_sync(is_package, options.config.path):
            return await build_package(options.package(options.config.path), tools, options.config.options)
        async with open_orchestrator(options.config, tools) as orchestrator:
            return await orchestrator.render()
    except (TreeError, PackageError) as error:
        return BuildError(str(error))


async def _build(options: OfflineOptions) -> Result | BuildError:
    try:
        async with open_tools(options.tools) as tools:
            return await build_path(options, tools)
    except PackageError as error:
        return BuildError(str(error))


def tell(text: str) -> None:
    """Print a text for people to stderr, without anything that a terminal would obey."""
    lines = (printable(line) for line in text.splitlines())
    sys.stderr.write(encodable("".join(f"{line}\n" for line in lines), sys.stderr.encoding or "utf-8"))
