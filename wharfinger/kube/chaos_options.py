"""The options for intentional faults of a control plane, for all commands that start one."""

import argparse


def add_chaos(parser: argparse.ArgumentParser, condition: str) -> None:
    """Add ``--chaos`` (its help begins with ``condition``) and its seed to a command that starts a control plane."""
    group = parser.add_argument_group("chaos", "intentional faults, by rules (docs/chaos.md)")
    group.add_argument(
        "--chaos",
        metavar="RULES",
        help=f"{condition}inject faults into requests: a YAML file of rules, or rules as in 'latency verb=list delay=200ms; "
        "error code=503 verb=patch times=2'; faults: latency, drop-before, drop-after, error, throttle, cut-watch, stale-read, "
        "slow-list, partition",
    )
    group.add_argument(
        "--chaos-seed",
        type=int,
        default=0,
        metavar="N",
        help="the random seed for rules with a chance (default: %(default)s)",
    )
