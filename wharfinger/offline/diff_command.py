"""``wharfinger diff``: what a change of a tree changes in the cluster, object by object."""

import argparse
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.encodable import encodable
from wharfinger.offline.building_command import BuildError, build_path, tell
from wharfinger.offline.discovery.tree import root_of
from wharfinger.offline.options import OfflineOptions, OptionError, add_options, add_path, read_options
from wharfinger.offline.orchestrator.orchestrator import Config, Tools
from wharfinger.offline.orchestrator.result import Result
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


@dataclass(frozen=True, slots=True)
class Sides:
    """Both builds."""

    before: Result
    after: Result


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``wharfinger diff``."""
    parser.description = (
        "Build a path as it is now and as it was, and show each object that differs, with a summary of what is added, changed "
        "and deleted, which images change, and what is dangerous. Values of Secrets are hidden. Objects of a producer that "
        "failed are not compared. "
        "Exit code 0: no difference; 2: differences; 1: something failed, wrong usage, or an unreadable path."
    )
    add_path(parser)
    parser.add_argument(
        "--against",
        required=True,
        metavar="FOLDER|REVISION",
        help="what to compare with: another folder in place of the root, or a revision of the path's git repository",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("unified", "json", "markdown", "html"),
        default="unified",
        help="unified (default), json, markdown for a comment on a review, or html for a page",
    )
    add_options(parser)
    parser.set_defaults(handler=diff)


def diff(args: argparse.Namespace) -> int:
    """Compare and print."""
    try:
        options = read_options(args)
        sides = run_diff(options, cast("str", args.against))
    except (OptionError, BuildError) as error:
        tell(f"error: {error}")
        return EXIT_FAILED
    comparison = compared(sides.before, sides.after)
    if args.output == "json":
        text = diff_json(comparison)
    elif args.output == "markdown":
        text = diff_markdown(comparison)
    elif args.output == "html":
        text = diff_html(comparison)
    else:
        text = unified(comparison, coloured=sys.stdout.isatty())
    sys.stdout.write(encodable(text, sys.stdout.encoding or "utf-8"))
    sys.stdout.flush()
    tell(report_text(sides.after) + "".join(f"{line}\n" for line in summary_lines(comparison)))
    if sides.after.failed:
        return EXIT_FAILED
    return EXIT_DIFFERENT if comparison.changes else 0


def run_diff(options: OfflineOptions, against: str) -> Sides:
    """Build both sides. Raises BuildError."""
    result = trio.run(_sides, options, against)
    if isinstance(result, BuildError):
        raise result
    return result


async def _sides(options: OfflineOptions, against: str) -> Sides | BuildError:
    """Return both sides, or the error: one raised between the pools would come out of their nurseries in a group."""
    try:
        base = await _base(options, against)
        async with AsyncExitStack() as stack:
            tools = await stack.enter_async_context(open_tools(options.tools))
            return await _both(base, options, tools)
    except (PackageError, SourceError) as error:
        return BuildError(str(error))


async def _both(base: OfflineOptions, options: OfflineOptions, tools: Tools) -> Sides | BuildError:
    before = await build_path(base, tools)
    if isinstance(before, BuildError):
        return before
    after = await build_path(options, tools)
    return after if isinstance(after, BuildError) else Sides(before, after)


async def _base(options: OfflineOptions, against: str) -> OfflineOptions:
    """Return the options of the other side. Raises SourceError."""
    path, root, repository = await trio.to_thread.run_sync(_places, options.config)
    if await trio.Path(against).is_dir():
        other = Path(await trio.Path(against).resolve())
    elif repository is None:
        raise SourceError(f"--against {against}: no such folder, and {path} lies in no git repository")
    else:
        checkout = await GitFetcher(options.tools.cache).folder_of(repository, against)
        other = checkout / root.relative_to(repository) if root.is_relative_to(repository) else checkout
    below = other / path.relative_to(root)
    if not await trio.Path(below).exists():
        raise SourceError(f"--against {against}: has no {path.relative_to(root)}; name a side that has it")
    return replace(options, config=replace(options.config, path=below, root=other))


def _places(config: Config) -> tuple[Path, Path, Path | None]:
    """Return the path, its root, and the git repository that it lies in. Blocking. Raises SourceError."""
    path = config.path.resolve()
    root = (config.root or root_of(path)).resolve()
    if not path.is_relative_to(root):
        raise SourceError(f"{config.path}: does not lie below the root {config.root}; name a root that contains it")
    return path, root, next((each for each in (path, *path.parents) if (each / ".git").exists()), None)
