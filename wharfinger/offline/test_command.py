"""``wharfinger test``: build packages, charts and trees, and run the tests that their authors have written.

Each package has its own tests. All paths with manifests together are one tree, which has the tests of all these paths.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.encodable import write_text
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.option_values import path_option
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.building_command import (
    BuildError,
    build_paths,
    few_collections,
    open_progress,
    packages_and_trees,
    print_message,
)
from wharfinger.offline.options import OfflineOptions, OptionError, add_options, add_path, read_options
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.verdicts_text import verdicts_json, verdicts_junit, verdicts_text
from wharfinger.offline.testing.case_file import FOLDER, SUFFIXES, Case, CaseFileError, files_with_tests, read_tests
from wharfinger.offline.testing.verdicts import Verdict, judged
from wharfinger.packages.errors import PackageError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


@dataclass(frozen=True, slots=True)
class _Target:
    """A package or a tree, and its tests."""

    options: OfflineOptions
    cases: tuple[Case, ...]


def add_test(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger test``."""
    parser.description = (
        "For each test, build the manifests of the paths with the values of the test, and compare the objects with the "
        f"expectations of the test. The tests are in the files {FOLDER}/*{SUFFIXES[0]} below each path, or in the files of "
        "--tests; docs/offline.md describes their format. Exit code 0: all tests passed; 1: a test failed; 2: wrong usage, "
        "or an unreadable path or test."
    )
    add_path(parser)
    parser.add_argument(
        "--tests",
        type=path_option,
        action="append",
        default=[],
        metavar="FILE",
        help=f"a file with tests (may be repeated; default: the files in {FOLDER}/ below each path)",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json", "junit"), default="text", help="text (default), json or junit"
    )
    add_options(parser)
    parser.set_defaults(handler=test)


def test(args: argparse.Namespace) -> int:
    """Run the tests of the paths, and print their verdicts."""
    try:
        options = read_options(args)
        with few_collections():
            verdicts = trio.run(_verdicts, options, _targets(options, cast("list[Path]", args.tests)))
        if isinstance(verdicts, BuildError):
            raise verdicts
    except (OptionError, BuildError, CaseFileError) as error:
        print_message(f"error: {error}")
        return EXIT_USAGE
    if args.output == "json":
        text = verdicts_json(verdicts)
    elif args.output == "junit":
        text = verdicts_junit(verdicts)
    else:
        text = printable(verdicts_text(verdicts), allow="\n")
    write_text(sys.stdout, text)
    return 0 if all(each.passed for each in verdicts) else EXIT_FAILED


def _targets(options: OfflineOptions, files: list[Path]) -> list[_Target]:
    """Return the packages, charts and trees to build, each with its tests. The tests are read from ``files`` or, if there are
    no such files, from the test files of each path. Raises CaseFileError.
    """
    packages, trees = packages_and_trees(options.paths)
    groups = [*([path] for path in packages), *([trees] if trees else [])]
    if files and len(groups) > 1:
        raise CaseFileError(
            f"--tests {files[0]}: expected the path of one package or chart, or the paths of one tree, found {len(groups)} "
            "packages, charts and trees; name one of them"
        )
    targets: list[_Target] = []
    for paths in groups:
        found = tuple(files) or tuple(file for path in paths for file in files_with_tests(path))
        if not found:
            named = ", ".join(map(str, paths))
            raise CaseFileError(
                f"{named}: has no {FOLDER}/*{SUFFIXES[0]}; add a file with tests, or name one with --tests"
            )
        cases = tuple(case for file in found for case in read_tests(file))
        if paths is trees and (named_values := next((each for each in cases if each.values is not None), None)):
            where = f"{named_values.file}: {named_values.name}"
            raise CaseFileError(f"{where}: values are for one package or chart, but {paths[0]} is a tree; remove them")
        targets.append(_Target(options.of(paths), cases))
    return targets


async def _verdicts(options: OfflineOptions, targets: Sequence[_Target]) -> tuple[Verdict, ...] | BuildError:
    """Return the verdicts or the error. The error is not raised, because the nurseries of the pools would wrap it in an exception
    group.
    """
    try:
        async with open_tools(options.tools) as tools, open_progress(options, tools):
            verdicts: list[Verdict] = []
            count = sum(len(target.cases) for target in targets)
            for target in targets:
                plain: Result | BuildError | None = None
                for case in target.cases:
                    tools.progress.step = f"test {len(verdicts) + 1} of {count}"
                    if case.values is not None:
                        settings = overlaid(options.settings, case.values)
                        result = await build_paths(replace(target.options, settings=settings), tools)
                    else:  # tests without values of their own share one build of their target
                        result = plain = plain or await build_paths(target.options, tools)
                    if isinstance(result, BuildError):
                        return result
                    verdicts.append(judged(case, result))
            return tuple(verdicts)
    except PackageError as error:
        return BuildError(str(error))
