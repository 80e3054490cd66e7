"""The stage and the state of packages as text, and the order of states. Pure; the caller makes the text safe for a terminal."""

from collections.abc import Iterable
from typing import Final

from wharfinger.debug.printing.task import doing_text
from wharfinger.runtime.inspector import PackageSnapshot

_RANKS: Final = (
    "Failed",
    "Degraded",
    "Updating",
    "Pending",
    "RolledBack",
    "Removing",
    "Disabling",
    "Suspended",
    "Disabled",
    "Ready",
)
"""The states of packages, the one that needs most attention first."""
_UNKNOWN: Final = _RANKS.index("RolledBack")


def stage_text(package: PackageSnapshot) -> str:
    """Return what a package does now: its task or its operation, how many of its objects are done, or what it waits for."""
    running = next((each.operation for each in package.operations if each.in_flight), "")
    doing = doing_text(package.queue) or running
    if doing and package.progress is not None:
        return f"{doing} {package.progress.completed}/{package.progress.completed + package.progress.remaining}"
    if not doing and package.waits_for:
        return f"waits for {', '.join(package.waits_for)}"
    return doing


def state_rank(state: str) -> int:
    """Return the rank of a state, 0 for the worst; an unknown state (of a newer daemon) ranks in the middle."""
    return _RANKS.index(state) if state in _RANKS else _UNKNOWN


def state_counts(packages: Iterable[PackageSnapshot]) -> list[tuple[str, int]]:
    """Return the number of packages in each state, the worst state first."""
    counts: dict[str, int] = {}
    for package in packages:
        counts[package.state] = counts.get(package.state, 0) + 1
    return sorted(counts.items(), key=lambda each: (state_rank(each[0]), each[0]))
