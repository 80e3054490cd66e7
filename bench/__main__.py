"""Run the benchmarks: ``python -m bench [PART ...]``; prints one row a measurement, exit code 1 if a budget is passed."""

import importlib
import sys
from typing import cast

from bench.measure import Measure, Ratio

PARTS = (
    "formats",
    "process",
    "queue",
    "slots",
    "cluster",
    "tables",
    "reconciler",
    "drift",
    "releases",
    "packages",
    "hooks",
    "hook_path",
    "monitors",
    "watches",
    "httpd",
    "control_plane",
    "fixpoint",
    "scheduler",
    "runtime",
    "memory",
)


def main() -> int:
    """Measure the parts named, or all."""
    chosen = sys.argv[1:] or PARTS
    if unknown := set(chosen) - set(PARTS):
        print(f"error: no benchmark of {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print(f"{'part':<10}{'what':<44}{'against':<44}{'ours ms':>10}{'theirs ms':>10}{'ratio':>8}{'budget':>8}")
    passed = False
    for part in chosen:
        measure = cast("Measure", importlib.import_module(f"bench.{part}").measure)
        for row in measure():
            print(line(row), flush=True)
            passed = passed or row.ratio > row.budget
    return 1 if passed else 0


def line(row: Ratio) -> str:
    """One row of the table; a passed budget is marked."""
    mark = "  over budget" if row.ratio > row.budget else ""
    return (
        f"{row.part:<10}{row.what:<44}{row.yardstick:<44}{row.ours_s * 1e3:>10.2f}{row.theirs_s * 1e3:>10.2f}"
        f"{row.ratio:>8.2f}{row.budget:>8.1f}{mark}"
    )


if __name__ == "__main__":
    sys.exit(main())
