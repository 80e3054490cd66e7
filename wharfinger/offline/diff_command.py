"""``wharfinger diff``: the effect of a change of a tree on the cluster, object by object."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.encodable import write_text
from wharfinger.offline.building_command import (
    BuildError,
    build_paths,
    few_collections,
    open_progress,
    packages_and_trees,
    print_message,
)
from wharfinger.offline.discovery.repository_address import repository_of
from wharfinger.offline.discovery.tree import repository_above, root_of
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.options import OfflineOptions, OptionError, add_filter, add_options, add_path, read_options
from wharfinger.offline.orchestrator.orchestrator import Tools
from wharfinger.offline.orchestrator.selection import SelectionError, check_filters, selected, selection_of
from wharfinger.offline.orchestrator.sides import Sides, TreeVersion, build_sides
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.comparison import compared
from wharfinger.offline.output.diff_html import diff_html
from wharfinger.offline.output.diff_markdown import diff_markdown
from wharfinger.offline.output.diff_text import diff_json, summary_lines, unified
from wharfinger.offline.output.report import report_text
from wharfinger.offline.sources.fetcher import SourceError
from wharfinger.offline.sources.git import GitFetcher
from wharfinger.packages.errors import PackageError

EXIT_FAILED: Final = 1
EXIT_DIFFERENT: Final = 2


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger diff``."""
    parser.description = (
        "Build the manifests of the paths twice: once as they are now, and once as they are in the folder or revision that "
        "--against names. Show each object that differs, and a summary: the objects that are added, changed and deleted, "
        "the images that change, and the dangerous changes. Values of Secrets are hidden. If a release, a Kustomization or a "
        "package cannot be built, its objects are not compared. Exit code 0: no difference; 2: differences; 1: an object "
        "could not be built, wrong usage, or an unreadable path. `wharfinger diff NAME`, without --against, asks a running "
        "daemon what the next apply of a package would change."
    )
    add_path(parser)
    parser.add_argument(
        "--against",
        required=True,
        metavar="FOLDER|REVISION",
        help="what to compare the paths with: a folder with another version of the files below --root, "
        "or a revision of the git repository that contains the paths",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("unified", "json", "markdown", "html"),
        default="unified",
        help="unified (default); json; markdown: for a comment in a review; html: a web page",
    )
    parser.add_argument(
        "--render-all",
        action="store_true",
        help="render every release; without this option, a release whose inputs are the same on both sides is not rendered",
    )
    add_filter(parser)
    add_options(parser)
    parser.set_defaults(handler=diff)


def diff(args: argparse.Namespace) -> int:
    """Compare both sides, and print the differences."""
    try:
        options = read_options(args)
        sides = run_diff(options, cast("str", args.against), everything=bool(args.render_all))
        sides = _filtered(options, cast("str", args.against), sides)
    except (OptionError, BuildError, SelectionError) as error:
        print_message(f"error: {error}")
        return EXIT_FAILED
    comparison = replace(compared(sides.before, sides.after), unsearched=tuple(sorted(sides.unsearched)))
    if args.output == "json":
        text = diff_json(comparison)
    elif args.output == "markdown":
        text = diff_markdown(comparison)
    elif args.output == "html":
        text = diff_html(comparison)
    else:
        text = unified(comparison, coloured=sys.stdout.isatty())
    write_text(sys.stdout, text)
    lines = (*summary_lines(comparison), *_unchanged_lines(sides))
    if sides.before.failed:
        print_message(f"problems of the other side, {args.against}:\n{report_text(sides.before)}problems of the paths:")
    print_message(report_text(sides.after) + "".join(f"{line}\n" for line in lines))
    if sides.before.failed or sides.after.failed:
        return EXIT_FAILED
    return EXIT_DIFFERENT if comparison.changes else 0


def _filtered(options: OfflineOptions, against: str, sides: Sides) -> Sides:
    """Return the objects that the filters choose on each side. Raises BuildError, and SelectionError if a filter chooses no
    object.
    """
    filters = options.config.filters
    if not filters:
        return sides
    try:
        check_filters(filters, sides.before, sides.after)
    except SelectionError:
        if not sides.unchanged:
            raise
        # A release that was not rendered may make what the filter names.
        sides = run_diff(options, against, everything=True)
        check_filters(filters, sides.before, sides.after)
    old, new = (selection_of(each, filters) for each in (sides.before, sides.after))
    return Sides(
        selected(sides.before, old),
        selected(sides.after, new),
        frozenset(who for who in sides.unchanged if who in old or who in new),
        frozenset(who for who in sides.unsearched if who in old or who in new),
    )


def _unchanged_lines(sides: Sides) -> Iterator[str]:
    count = len(sides.unchanged)
    if count:
        releases = "1 release was" if count == 1 else f"{count} releases were"
        yield f"{releases} not rendered: the inputs are the same on both sides"


def run_diff(options: OfflineOptions, against: str, *, everything: bool = False) -> Sides:
    """Build both sides; with ``everything``, releases that cannot differ are rendered, too. Raises BuildError."""
    with few_collections():
        result = trio.run(partial(_sides, options, against, everything=everything))
    if isinstance(result, BuildError):
        raise result
    return result


async def _sides(options: OfflineOptions, against: str, *, everything: bool) -> Sides | BuildError:
    """Build both sides of the diff. Return an error instead of raising it, because the nurseries of the pools would wrap it in
    an exception group.
    """
    options = options.without_filters()
    try:
        base = await _base(options, against)
        async with AsyncExitStack() as stack:
            tools = await stack.enter_async_context(open_tools(options.tools))
            await stack.enter_async_context(open_progress(options, tools))
            return await _both(base, options, tools, everything=everything)
    except (PackageError, SourceError, TreeError) as error:
        return BuildError(str(error))


async def _both(base: OfflineOptions, options: OfflineOptions, tools: Tools, *, everything: bool) -> Sides | BuildError:
    packages = [await trio.to_thread.run_sync(_has_package, each) for each in (base, options)]
    folder = base.tools.packages
    base_tools = replace(tools, packages=replace(tools.packages, folder=folder))
    if not any(packages):
        sides = (TreeVersion(base.config, base_tools), TreeVersion(options.config, tools))
        try:
            return await build_sides(*sides, everything=everything)
        except (PackageError, TreeError) as error:
            return BuildError(str(error))
    before = await build_paths(base, base_tools)
    if isinstance(before, BuildError):
        return before
    after = await build_paths(options, tools)
    return after if isinstance(after, BuildError) else Sides(before, after)


async def _base(options: OfflineOptions, against: str) -> OfflineOptions:
    """Return the options that build the other side of the diff: the folder or git revision ``against``. Raises SourceError."""
    root, repository = await trio.to_thread.run_sync(_places, options)
    limit: Path | None = None
    if await trio.Path(against).is_dir():
        other = Path(await trio.Path(against).resolve())
    elif repository is None:
        raise SourceError(f"--against {against}: no such folder, and {options.config.path} lies in no git repository")
    else:
        limit = checkout = await GitFetcher(options.tools.cache).folder_of(repository, against)
        other = checkout / root.relative_to(repository) if root.is_relative_to(repository) else checkout
    there = await trio.to_thread.run_sync(_counterparts, options, root, other)
    if not there:
        named = ", ".join(str(path.resolve().relative_to(root)) for path in options.paths)
        raise SourceError(f"--against {against}: {named} does not exist in it; name a folder or a revision that has it")
    # A checkout of a revision has no git remotes, so it gets the addresses of the repository at the root.
    found = await trio.to_thread.run_sync(repository_of, root)
    tools = replace(
        options.tools, packages=await trio.to_thread.run_sync(_packages, options.tools.packages, root, other)
    )
    config = replace(options.config, root=other, repository=found, limit=limit, pack=options.paths)
    return replace(options, config=config, tools=tools).of(there)


def _has_package(options: OfflineOptions) -> bool:
    """Return whether one of the paths is a package. Blocking."""
    return bool(packages_and_trees(options.paths)[0])


def _counterparts(options: OfflineOptions, root: Path, other: Path) -> list[Path]:
    """Return the paths on the other side of the diff that correspond to the paths of ``options``. Paths that do not exist there
    are left out. Blocking.
    """
    return [there for path in options.paths if (there := other / path.resolve().relative_to(root)).exists()]


def _packages(packages: Path | None, root: Path, other: Path) -> Path | None:
    """Return the folder of packages for the other side of the comparison: the folder at the same path there if ``packages`` is
    below ``root``, otherwise ``packages`` itself. Blocking. Raises SourceError.
    """
    if packages is None or not packages.resolve().is_relative_to(root):
        return packages
    found = other / packages.resolve().relative_to(root)
    if not found.is_dir():
        raise SourceError(
            f"--packages {packages}: --against does not contain this folder; name a folder outside of {root}"
        )
    return found


def _places(options: OfflineOptions) -> tuple[Path, Path | None]:
    """Return the root of the paths, and the git repository in which they lie (None if they lie in no repository). Blocking.
    Raises SourceError, TreeError.
    """
    given = options.config.root
    root = given.resolve() if given is not None else root_of(*options.paths)
    for path in options.paths:
        if not path.resolve().is_relative_to(root):
            raise SourceError(f"{path}: does not lie below the root {given}; name a root that contains it")
    return root, repository_above(options.config.path.resolve())
