"""The options for intentional faults of a control plane, for all commands that start one."""

import argparse


def add_chaos(parser: argparse.ArgumentParser, condition: str) -> None:
    """Add ``--chaos`` (its help begins with ``condition``) and its seed to a command that starts a control plane."""
    group = parser.add_argument_group(
        "chaos", "intentional faults, for tests of clients; docs/chaos.md describes the rules"
    )
    group.add_argument(
        "--chaos",
        metavar="RULES",
        help=f"{condition}inject faults into requests. RULES is a YAML file of rules, or the rules themselves, such as "
        "'latency verb=list delay=200ms; error code=503 verb=patch times=2'. The faults are latency, drop-before, "
        "drop-after, error, throttle, cut-watch, stale-read, slow-list and partition",
    )
    group.add_argument(
        "--chaos-seed",
        type=int,
        default=0,
        metavar="N",
        help="the seed of the random numbers for rules that contain 'chance=' (default: %(default)s)",
    )
