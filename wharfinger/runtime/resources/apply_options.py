"""The options of `wharfinger run` for the reconciler, which applies, corrects, prunes and deletes the objects of releases."""

import argparse
import math
from dataclasses import replace
from typing import Final, NamedTuple

from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.releases.options import EngineOptions

DEFAULTS: Final = EngineOptions().reconciler
MAX_SECONDS: Final = 30 * 24 * 3600.0
MAX_COUNT: Final = 100_000


class _Option(NamedTuple):
    field: str
    flag: str
    help: str
    may_be_0: bool = False


_COUNTS: Final = (
    _Option("concurrency", "--apply-workers", "limit on objects that are applied or deleted at the same time"),
    _Option(
        "owner_concurrency",
        "--apply-release-workers",
        "limit on objects of one wave of a release that are applied or deleted at the same time; docs/apply.md lists the "
        "waves",
    ),
    _Option(
        "slow_concurrency",
        "--apply-slow-workers",
        "number of additional workers for operations that hang, and for retries in releases with hanging operations",
    ),
    _Option(
        "round_size",
        "--apply-round-size",
        "limit on changed objects that the reconciler accepts together (in one round)",
    ),
)
_SECONDS: Final = (
    _Option(
        "round_gap_s",
        "--apply-round-gap",
        "minimum time between two rounds of the reconciler; changes are collected in the meantime",
        may_be_0=True,
    ),
    _Option(
        "patience_s",
        "--apply-patience",
        "time after which an operation counts as hanging; it then moves to an additional worker (--apply-slow-workers)",
    ),
    _Option("operation_s", "--apply-timeout", "time after which an operation is cancelled and retried"),
    _Option(
        "first_retry_s",
        "--apply-retry-first",
        "time before the first retry of an object; the time doubles before each further retry",
    ),
    _Option("max_retry_s", "--apply-retry-max", "maximum time between two retries of an object"),
    _Option(
        "permanent_retry_s",
        "--apply-retry-refused",
        "time between two retries of an object after a permanent failure, that is, one that only a change of the object "
        "can resolve",
    ),
    _Option(
        "refresh_s",
        "--refresh-interval",
        "time after which an applied object is read and applied again, even if nothing has changed; 0: never",
        may_be_0=True,
    ),
    _Option(
        "prune_s",
        "--prune-interval",
        "time between two prunes, which delete objects that no release contains any more; 0: prune only at a forced "
        "reconciliation",
        may_be_0=True,
    ),
)
_RATE: Final = _Option(
    "refresh_per_s", "--refresh-rate", "limit on objects that are corrected or refreshed in each second"
)


def add_apply(parser: argparse.ArgumentParser) -> None:
    """Add the group of the options that determine how the objects of releases are applied."""
    group = parser.add_argument_group(
        "applying objects",
        "how the objects of releases are applied and kept up to date; docs/reconciler.md explains how these options interact",
    )
    for option in _COUNTS:
        group.add_argument(
            option.flag,
            dest=f"apply_{option.field}",
            type=_count,
            default=getattr(DEFAULTS, option.field),
            metavar="N",
            help=f"{option.help} (default: %(default)s)",
        )
    for option in (*_SECONDS, _RATE):
        group.add_argument(
            option.flag,
            dest=f"apply_{option.field}",
            type=_number_from_0 if option.may_be_0 else _number,
            default=getattr(DEFAULTS, option.field),
            metavar="N" if option is _RATE else "SECONDS",
            help=f"{option.help} (default: %(default)g)",
        )


def apply_options(args: argparse.Namespace) -> ReconcilerOptions:
    """Return the options from the arguments. Raises ValueError, which names the options, if they contradict each other."""
    first, most, refused = args.apply_first_retry_s, args.apply_max_retry_s, args.apply_permanent_retry_s
    if not first <= most <= refused:
        raise ValueError(
            "expected --apply-retry-first <= --apply-retry-max <= --apply-retry-refused, found "
            f"{first:g}, {most:g} and {refused:g}; change one of them"
        )
    if args.apply_patience_s > args.apply_operation_s:
        raise ValueError(
            f"--apply-patience {args.apply_patience_s:g} is more than --apply-timeout {args.apply_operation_s:g}; "
            "change one of them"
        )
    return replace(
        DEFAULTS,
        concurrency=args.apply_concurrency,
        owner_concurrency=args.apply_owner_concurrency,
        slow_concurrency=args.apply_slow_concurrency,
        round_size=args.apply_round_size,
        round_gap_s=args.apply_round_gap_s,
        patience_s=args.apply_patience_s,
        operation_s=args.apply_operation_s,
        first_retry_s=first,
        max_retry_s=most,
        permanent_retry_s=refused,
        refresh_s=args.apply_refresh_s,
        refresh_per_s=args.apply_refresh_per_s,
        prune_s=args.apply_prune_s,
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_COUNT}")
    return int(text)


def _number(text: str) -> float:
    number = _number_from_0(text)
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _number_from_0(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {MAX_SECONDS:g}")
    return number
