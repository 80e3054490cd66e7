"""The build of paths with the options of a command, for all offline commands.

All paths with manifests are one tree. A chart or a package among the paths is built by itself, and the results are merged.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.encodable import write_text
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.options import OfflineOptions
from wharfinger.offline.orchestrator.narrowing import build_narrowed
from wharfinger.offline.orchestrator.orchestrator import Tools
from wharfinger.offline.orchestrator.result import Result, merged
from wharfinger.offline.orchestrator.selection import SelectionError, check_filters, selected, selection_of
from wharfinger.offline.orchestrator.single import build_package, is_package
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.store.identity import shown
from wharfinger.packages.errors import PackageError
from wharfinger.runtime.plan.progress_line import open_progress_line

GC_THRESHOLDS: Final = (50_000, 20, 50)


class BuildError(Exception):
    """The paths cannot be built at all, for example because one of them cannot be read, or two of them build the same object."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage rarely while the block runs.

    A build makes many objects that live until its end, and each collection walks all of them: with Python's default thresholds,
    collections take a third of the processor time of a build whose charts are cached.
    """
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run_build(options: OfflineOptions) -> Result:
    """Build the paths of the options. Raises BuildError."""
    with few_collections():
        result = trio.run(_build, options)
    if isinstance(result, BuildError):
        raise result
    return result


async def build_paths(options: OfflineOptions, tools: Tools) -> Result | BuildError:
    """Return the result or the error. The error is not raised, because the nurseries of the pools would wrap it in an exception
    group.
    """
    packages, trees = await trio.to_thread.run_sync(packages_and_trees, options.paths)
    if options.name and len(packages) > 1:
        return BuildError(
            f"--name {options.name}: {len(packages)} paths are packages, but only one package can have this name; "
            "build one path at a time"
        )
    results: list[Result] = []
    try:
        for path in packages:
            tools.progress.step = tools.progress.step or f"rendering {path}"
            results.append(await build_package(options.package(path), tools, options.config.options))
        if trees:
            results.append(await build_narrowed(options.of(trees).config, tools))
    except (TreeError, PackageError) as error:
        return BuildError(str(error))
    made = [who for result in results for who in {*result.manifests, *result.failed}]
    if doubled := sorted({who for who in made if made.count(who) > 1}):
        return BuildError(f"{shown(doubled[0])} is built by two of the paths; build them one after the other")
    whole, filters = results[0] if len(results) == 1 else merged(results), options.config.filters
    if not filters:
        return whole
    try:
        check_filters(filters, whole)
    except SelectionError as error:
        return BuildError(str(error))
    return selected(whole, selection_of(whole, filters))


def packages_and_trees(paths: tuple[Path, ...]) -> tuple[list[Path], list[Path]]:
    """Return the paths of packages and the paths of trees, both sorted and without duplicates. Blocking."""
    once = list({path.resolve(): path for path in sorted(paths, reverse=True)}.values())[::-1]
    packages = [path for path in once if is_package(path)]
    return packages, [path for path in once if path not in packages]


async def _build(options: OfflineOptions) -> Result | BuildError:
    try:
        async with open_tools(options.tools) as tools, open_progress(options, tools):
            return await build_paths(options, tools)
    except PackageError as error:
        return BuildError(str(error))


def open_progress(options: OfflineOptions, tools: Tools) -> AbstractAsyncContextManager[None]:
    """Show the progress of builds on stderr while the block runs, if stderr is a terminal and the options allow it."""
    return open_progress_line(sys.stderr, tools.progress.text, wanted=options.progress)


def print_message(text: str) -> None:
    """Print a text for people to stderr, without control characters of terminals."""
    lines = (printable(line) for line in text.splitlines())
    write_text(sys.stderr, "".join(f"{line}\n" for line in lines))
