"""Run the benchmarks: ``python -m bench [--long] [PART ...]``.

A *part* is a module of this folder. Each measurement is a row on standard output, with a ratio of two figures and a budget, the
highest allowed ratio. Standard error shows the progress. If a row exceeds its budget, its part is measured again, and the lower
ratio counts, because other work on the machine usually makes a ratio worse. Each run of a part is a new process, because the
heap and the threads of one part would slow down the next. The exit code is 1 if a row exceeds its budget in every run, and 2
for a wrong command line.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from typing import Final, cast

from bench.measure import KUBECONFIG, PACKAGES, Ratio, in_child

PARTS: Final = (
    "formats",
    "process",
    "queue",
    "slots",
    "cluster",
    "tables",
    "reconciler",
    "drift",
    "releases",
    "scale",
    "packages",
    "hooks",
    "hook_path",
    "pools",
    "monitors",
    "watches",
    "httpd",
    "debug_socket",
    "control_plane",
    "fixpoint",
    "scheduler",
    "offline",
    "runtime",
    "steps",
    "memory",
    "recorder",
)
LONG_PARTS: Final = ("recorder",)
"""Parts that are measured only with ``--long``, or if the command line names them."""
RUNS: Final = 3
"""The maximum number of runs of a part."""


def main() -> int:
    """Measure the named parts. If none is named, measure all parts, but LONG_PARTS only with ``--long``."""
    arguments = _arguments()
    long = cast("bool", arguments.long)
    chosen = cast("list[str]", arguments.part) or [part for part in PARTS if long or part not in LONG_PARTS]
    if kubeconfig := cast("str | None", arguments.kubeconfig):
        os.environ[KUBECONFIG] = os.path.abspath(kubeconfig)  # noqa: PTH100 - a link stays a link
    if numbers := cast("list[int]", arguments.packages):
        os.environ[PACKAGES] = " ".join(map(str, numbers))
    began, over = time.monotonic(), list[str]()
    print(f"{'part':<13} {'what':<43} {'against':<43} {'ours':>9} {'theirs':>9} {'ratio':>7} {'budget':>7}", flush=True)
    for number, part in enumerate(chosen, 1):
        _progress(f"measuring {part}, part {number} of {len(chosen)}, {time.monotonic() - began:.0f} s so far")
        for row in rows_of(part, long=long):
            _progress("")
            print(line(row), flush=True)
            over += [row.what] if row.is_over else []
    _progress("")
    said = f"{len(over)} over budget: {'; '.join(over)}" if over else "every row is within its budget"
    print(f"{len(chosen)} parts in {time.monotonic() - began:.0f} s; {said}")
    return 1 if over else 0


def rows_of(part: str, *, long: bool) -> Iterator[Ratio]:
    """Yield the rows of a part. While rows are over budget, the part runs again, at most RUNS times in all."""
    best = in_child(part, long)
    for run in range(2, 1 + RUNS):
        if not any(row.is_over for row in best):
            break
        _progress(f"measuring {part} again, run {run}: {sum(row.is_over for row in best)} over budget")
        best = [min(pair, key=lambda row: row.ratio) for pair in zip(best, in_child(part, long), strict=True)]
    yield from best


def line(row: Ratio) -> str:
    """Return one row of the table, with a mark if its budget is exceeded."""
    ours, theirs = row.unit.shown(row.ours), row.unit.shown(row.theirs)
    mark = "  over budget" if row.is_over else ""
    return f"{row.part:<13} {row.what:<43} {row.yardstick:<43} {ours:>9} {theirs:>9} {row.ratio:>7.2g} {row.budget:>7g}{mark}"


def _progress(text: str) -> None:
    """Show a line of progress. On a terminal, it replaces the previous line, and an empty text only erases that line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the parts against their yardsticks; see bench/README.md."
    )
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="measure the part `scale` on this cluster (default: an embedded control plane)",
    )
    parser.add_argument(
        "--packages",
        action="append",
        default=[],
        metavar="N",
        type=_positive,
        help="a number of packages for the part `scale`; can be repeated (default: 30; with --long 100, 300 and 1000)",
    )
    parser.add_argument(
        "--long", action="store_true", help="also measure the large sizes, which takes about fifteen minutes"
    )
    parser.add_argument(
        "part",
        nargs="*",
        choices=[*PARTS, []],
        metavar="PART",
        help=f"a part to measure (default: all, but {', '.join(LONG_PARTS)} only with --long): {', '.join(PARTS)}",
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    """Read the number of packages from an argument of the command line. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
