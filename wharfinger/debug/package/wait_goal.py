"""The goals of `wharfinger wait`: a package is ready, is gone, or has a condition. Pure."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias, assert_never

from wharfinger.runtime.inspector import ACCEPTED, REMOVED, PackageSnapshot

READY: Final = "ready"
DELETED: Final = "deleted"
_CONDITION: Final = "condition="
_STATUSES: Final = {"true": "True", "false": "False", "unknown": "Unknown"}


@dataclass(frozen=True, slots=True)
class Ready:
    """The goal that the package is Ready or, if ``wanted`` is False, that it is not Ready."""

    wanted: bool = True

    def __str__(self) -> str:
        """Return the goal as text."""
        return "ready" if self.wanted else "not ready"


@dataclass(frozen=True, slots=True)
class Deleted:
    """The package does not exist any more."""

    def __str__(self) -> str:
        """Return the goal as text."""
        return "deleted"


@dataclass(frozen=True, slots=True)
class HasCondition:
    """The package has a condition with this status."""

    type: str
    status: str

    def __str__(self) -> str:
        """Return the goal as text."""
        return f"condition {self.type} is {self.status}"


Goal: TypeAlias = Ready | Deleted | HasCondition


def read_goal(text: str) -> Goal:
    """Return the goal that a user typed: ``ready``, ``deleted``, ``condition=X`` or ``condition=X=False``. Raises ValueError."""
    word = text.strip().lower()
    if word == READY:
        return Ready()
    if word in (DELETED, "delete"):
        return Deleted()
    kind, _, status = text.removeprefix(_CONDITION).partition("=")
    found = _STATUSES.get((status or "true").lower())
    if text.startswith(_CONDITION) and kind and found:
        if kind.lower() != READY:
            return HasCondition(kind, found)
        if found == "Unknown":
            raise ValueError(f"{kind} can only be True or False, found {text!r}")
        return Ready(found == "True")
    raise ValueError(f"expected ready, deleted or condition=TYPE[=True|False|Unknown], found {text!r}")


def is_reached(goal: Goal, package: PackageSnapshot | None) -> bool:
    """Return whether a package has reached the goal; ``package`` is None if there is no such package."""
    match goal:
        case Deleted():
            return package is None
        case Ready(wanted):
            return package is not None and (package.state == "Ready") is wanted
        case HasCondition(type_, status):
            return package is not None and any(
                each.type.lower() == type_.lower() and each.status == status for each in package.conditions
            )
        case _:
            assert_never(goal)


def unknown_condition(goal: Goal, package: PackageSnapshot) -> str:
    """Return the problem with a goal whose condition a package never has; "" if there is no problem.

    The names of the conditions are read from the package, because a daemon of another version may have other conditions.
    """
    if not isinstance(goal, HasCondition):
        return ""
    known = {each.type.lower(): each.type for each in package.conditions} | {
        each.lower(): each for each in (ACCEPTED, REMOVED)
    }
    if goal.type.lower() in known:
        return ""
    near = get_close_matches(goal.type.lower(), known, 1)
    hint = f"did you mean {known[near[0]]}? " if near else ""
    return f"there is no condition {goal.type!r}; {hint}known are {', '.join(known.values())} and Ready"


def progress_text(package: PackageSnapshot | None) -> str:
    """Describe what a package does now, for the progress line, and for the error when the time is over."""
    if package is None:
        return "there is no such package yet"
    parts = [f"{package.state}: {package.message}" if package.message else package.state]
    if package.progress is not None and package.progress.waiting_for:
        waiting = ", ".join(package.progress.waiting_for)
        parts.append(f"{package.progress.completed} done, {package.progress.remaining} to go: {waiting}")
    return "; ".join(parts)
