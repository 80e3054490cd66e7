"""``wharfinger cache``: the size of the cache of offline commands, and its clean-up."""

import argparse
import sys
from pathlib import Path
from typing import Final, cast

from wharfinger.formats.encodable import write_text
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.formats.option_values import path_option
from wharfinger.offline.building_command import print_message
from wharfinger.offline.options import default_cache
from wharfinger.offline.sources.cache_folder import AreaStatistics, Removed, collect, statistics

EXIT_FAILED: Final = 1
MIB: Final = 1024 * 1024
MAX_MIB: Final = 1024
UNUSED_DAYS: Final = 30
_DAY_S: Final = 86_400.0
_MOST: Final = 10**9


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger cache``."""
    parser.description = (
        "Show or clean up the cache of `wharfinger build`, `diff` and `check`: rendered charts, kustomizations that were built, "
        "charts, and git commits. Everything in the cache can be fetched or built again."
    )
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    stats = actions.add_parser(
        "stats",
        help="show what the cache holds",
        description="Show the number and the total size of the entries in the build cache (sources and results), for each "
        "kind of entry.",
    )
    _add_common(stats)
    stats.set_defaults(handler=show_statistics)
    gc = actions.add_parser(
        "gc",
        help="remove entries that were not used for a long time",
        description="Remove the entries of the build cache (sources and results) that were not used during the last "
        "--unused-days days. Then remove the least recently used entries until the size of the cache is at most --max-mib. A "
        "source that was used within the last three hours is kept, because a build may be reading it. Downloaded packages are "
        "never removed, and do not count towards --max-mib. Exit code 0: done; 1: something could not be removed.",
    )
    gc.add_argument(
        "--max-mib",
        type=_number,
        default=MAX_MIB,
        metavar="MIB",
        help="the largest size, in MiB, that the cache may have afterwards (default: %(default)s)",
    )
    gc.add_argument(
        "--unused-days",
        type=_number,
        default=UNUSED_DAYS,
        metavar="DAYS",
        help="number of days after which an unused entry is removed (default: %(default)s)",
    )
    _add_common(gc)
    gc.set_defaults(handler=clean_up)


def show_statistics(args: argparse.Namespace) -> int:
    """Print the statistics of the cache."""
    cache = cast("Path", args.cache_dir)
    try:
        found = statistics(cache)
    except OSError as error:
        return _failed(error)
    if args.output == "json":
        areas: JsonObject = {name: {"entries": each.entries, "bytes": each.bytes} for name, each in found.items()}
        total = sum(each.bytes for each in found.values())
        write_text(sys.stdout, encode_json({"folder": str(cache), "areas": areas, "bytes": total}).decode() + "\n")
    else:
        write_text(sys.stdout, _table(found))
    return 0


def clean_up(args: argparse.Namespace) -> int:
    """Remove entries until the cache is within its limits, and print their number and their size."""
    cache = cast("Path", args.cache_dir)
    max_bytes, unused_s = cast("int", args.max_mib) * MIB, cast("int", args.unused_days) * _DAY_S
    try:
        removed = collect(cache, max_bytes=max_bytes, unused_s=unused_s)
    except OSError as error:
        return _failed(error)
    write_text(sys.stdout, _removed_text(removed, cache, as_json=args.output == "json"))
    for problem in removed.problems:
        print_message(f"error: {problem}")
    return EXIT_FAILED if removed.problems else 0


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")
    parser.add_argument(
        "--cache-dir",
        type=path_option,
        default=default_cache(),
        metavar="FOLDER",
        help="the folder of the cache (default: the folder wharfinger in $XDG_CACHE_HOME or ~/.cache)",
    )


def _table(found: dict[str, AreaStatistics]) -> str:
    rows = [("KIND", "ENTRIES", "SIZE")]
    rows += [(name, str(each.entries), _size(each.bytes)) for name, each in found.items()]
    rows.append(
        ("total", str(sum(each.entries for each in found.values())), _size(sum(each.bytes for each in found.values())))
    )
    return "".join(f"{name:<10}{entries:>9}{size:>14}\n" for name, entries, size in rows)


def _removed_text(removed: Removed, cache: Path, *, as_json: bool) -> str:
    if as_json:
        document: JsonObject = {
            "folder": str(cache),
            "removed": removed.entries,
            "bytes": removed.bytes,
            "problems": [*removed.problems],
        }
        return encode_json(document).decode() + "\n"
    return f"removed {removed.entries} entries, {_size(removed.bytes)}\n"


def _size(count: int) -> str:
    return f"{count / MIB:.1f} MiB"


def _failed(error: OSError) -> int:
    print_message(f"error: {error.filename}: {error.strerror}; check --cache-dir")
    return EXIT_FAILED


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_MOST}")
    return int(text)
