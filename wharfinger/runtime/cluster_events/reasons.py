"""The reasons of the Kubernetes Events that the daemon writes, with the type and the action of each.

The reasons are an interface: programs match on them, docs/events.md explains each of them, and the meaning of a reason never
changes.
"""

from enum import StrEnum
from typing import Self


class EventType(StrEnum):
    """The ``type`` of an Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventReason(StrEnum):
    """The reasons of Events; the string value of a member is the Event's ``reason``. ``meaning`` completes the sentence "The
    Event says that …".
    """

    type: EventType
    action: str
    meaning: str

    def __new__(cls, word: str, type_: EventType, action: str, meaning: str) -> Self:
        """Make a reason from its word and its properties."""
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.type, reason.action, reason.meaning = type_, action, meaning
        return reason

    INSTALLED = ("Installed", EventType.NORMAL, "Install", "the package is installed, and all of its objects are ready")
    UPGRADED = (
        "Upgraded",
        EventType.NORMAL,
        "Upgrade",
        "a newer version is installed, and all of its objects are ready",
    )
    ROLLED_BACK = (
        "RolledBack",
        EventType.NORMAL,
        "Upgrade",
        "an older version is installed, and all of its objects are ready",
    )
    UPGRADE_FAILED = (
        "UpgradeFailed",
        EventType.WARNING,
        "Upgrade",
        "an upgrade failed; the message says that the package returns to a former revision, or why it cannot return",
    )
    RETURNED = (
        "Returned",
        EventType.NORMAL,
        "Upgrade",
        "the package was rolled back to a former revision, and its objects are ready; its resource still requests another state",
    )
    RECOVERED = (
        "Recovered",
        EventType.NORMAL,
        "Reconcile",
        "the package is ready again; an earlier Event reported the problem",
    )
    FAILED = (
        "Failed",
        EventType.WARNING,
        "Reconcile",
        "an install, an upgrade, a reconciliation or a removal failed",
    )
    UNHEALTHY = (
        "Unhealthy",
        EventType.WARNING,
        "Reconcile",
        "an object of the package has failed, or has not been ready for some time",
    )
    HOOK_FAILED = (
        "HookFailed",
        EventType.WARNING,
        "RunHook",
        "a hook of the package, or a Helm hook of its chart, failed",
    )
    REQUIREMENT_MISSING = (
        "RequirementMissing",
        EventType.WARNING,
        "Decide",
        "the package is not installed, because a requirement is not met",
    )
    REQUIREMENT_LOST = (
        "RequirementLost",
        EventType.WARNING,
        "Decide",
        "the daemon no longer reconciles the installed package, because a requirement is not met any more; nothing is deleted",
    )
    HELD = (
        "Held",
        EventType.WARNING,
        "Decide",
        "a change or a removal has not begun, because it would break other packages or has to wait for other packages",
    )
    DRIFT_CORRECTED = (
        "DriftCorrected",
        EventType.NORMAL,
        "Correct",
        (
            "an object was changed or deleted by another program, and was applied again; if fields were changed, the message "
            "names the fields and, if it is known, the program"
        ),
    )
    DRIFT_FOUGHT = (
        "DriftFought",
        EventType.WARNING,
        "Correct",
        "another program changes an object again each time the daemon corrects the object",
    )
    SUSPENDED = ("Suspended", EventType.NORMAL, "Suspend", "a user has suspended the package")
    RESUMED = ("Resumed", EventType.NORMAL, "Resume", "a user has resumed the package")
    DISABLED = (
        "Disabled",
        EventType.NORMAL,
        "Decide",
        "the package was switched off, and has been uninstalled",
    )
    REMOVING = ("Removing", EventType.NORMAL, "Remove", "the removal of the package has begun")
    REPOSITORY_FAILED = (
        "RepositoryFailed",
        EventType.WARNING,
        "Download",
        "a package could not be downloaded from the repository",
    )
    MOVED = (
        "Moved",
        EventType.NORMAL,
        "Move",
        "the daemon of another shard manages the package from now on; nothing else changes",
    )
    LEADER_CHANGED = (
        "LeaderChanged",
        EventType.NORMAL,
        "Lead",
        (
            "a daemon has acquired the Lease, and manages the packages from now on; after a restart, it may be the same daemon "
            "as before"
        ),
    )
