"""Helpers that create snapshots of packages and nodes, from which explanations are made."""

from datetime import UTC, datetime, timedelta

from wharfinger.runtime.daemon_details import SlotsSnapshot
from wharfinger.runtime.inspector import ConditionSnapshot, PackageSnapshot, QueueSnapshot, TaskSnapshot
from wharfinger.runtime.scheduler_details import DependencySnapshot, LackSnapshot, NodeSnapshot, VoteSnapshot
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.why.causes import Known

NOW = datetime(2026, 5, 17, 12, 30, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=4)


def condition(kind: str, status: str = "False", reason: str = "Pending", message: str = "") -> ConditionSnapshot:
    return ConditionSnapshot(kind, status, reason, message, SINCE)


def conditions(*said: ConditionSnapshot) -> tuple[ConditionSnapshot, ...]:
    """Return one condition for each stage, and then the other given conditions. A condition that is not given is True."""
    by_type = {each.type: each for each in said}
    stages = tuple(by_type.pop(stage, condition(stage, "True", stage)) for stage in Stage)
    return (*stages, *by_type.values())


def task(
    name: str = "Run",
    *,
    index: int = 1,
    error: str = "",
    attempt: int = 1,
    retry_in_s: float | None = None,
    running: bool = False,
    parked: bool = False,
    waits_for: str = "",
) -> TaskSnapshot:
    return TaskSnapshot(index, name, "main", 1.0, attempt, running, retry_in_s, error, "", parked, waits_for)


def package(
    name: str, *said: ConditionSnapshot, state: str = "Failed", tasks: tuple[TaskSnapshot, ...] = ()
) -> PackageSnapshot:
    namespace = name.partition(".")[0] if "." in name else ""
    return PackageSnapshot(
        name=name,
        kind="Application" if namespace else "Module",
        namespace=namespace,
        package="web",
        version="1.0.0",
        digest="",
        release_revision=0,
        state=state,
        message="a message",
        tip="",
        settings={},
        conditions=conditions(*said),
        queue=QueueSnapshot(name, tasks),
    )


def ready(name: str) -> PackageSnapshot:
    return package(name, state="Ready")


def failing(
    name: str, reason: str = "PackageHookFailed", message: str = "hooks/a.sh: exit status 3"
) -> PackageSnapshot:
    error = f"{reason}: {message}"
    return package(
        name,
        condition(Stage.HOOKS, "False", reason, message),
        tasks=(task("Startup", error=error, attempt=4, retry_in_s=13.4),),
    )


def downloading(name: str) -> PackageSnapshot:
    fetched = condition(Stage.FETCHED, "Unknown", "Downloading", "downloading web 1.0.0")
    return package(name, fetched, state="Pending", tasks=(task("Download:1.0.0", running=True),))


def pending(name: str) -> PackageSnapshot:
    """Return a package that is loaded, but not configured yet."""
    return package(name, condition(Stage.CONFIGURED, "Unknown"), state="Pending")


def depends(text: str, *, optional: bool = False) -> DependencySnapshot:
    name, _, constraint = text.partition(" ")
    return DependencySnapshot(name, constraint, optional)


def node(
    name: str,
    *needs: str,
    state: str = "active",
    votes: tuple[VoteSnapshot, ...] = (),
    lacks: tuple[LackSnapshot, ...] = (),
    version: str = "1.0.0",
    order: int = 999,
) -> NodeSnapshot:
    """Return a node whose decision follows from its votes. Without votes, the node is on."""
    against = next((vote for vote in votes if vote.verdict == "Forbid"), votes[-1] if votes else None)
    decision = against or VoteSnapshot("Enable", "EnabledByDefault", "")
    return NodeSnapshot(
        name,
        version,
        order,
        state,
        decision.verdict,
        decision.reason,
        decision.message,
        tuple(depends(each) for each in needs),
        since=SINCE,
        lacks=lacks,
        votes=votes,
    )


def waiting(name: str, *lacked: str, order: int = 999) -> NodeSnapshot:
    """Return a node that waits for each of ``lacked``: a package, or all packages of an order, such as ``order 10``."""
    lacks = tuple(
        LackSnapshot("tier", each.removeprefix("order "), "held")
        if each.startswith("order ")
        else LackSnapshot("package", each, "idle")
        for each in lacked
    )
    return node(name, state="idle", lacks=lacks, order=order)


def forbidden(reason: str, message: str = "") -> VoteSnapshot:
    return VoteSnapshot("Forbid", reason, message)


def known(
    *found: PackageSnapshot | NodeSnapshot,
    slots: tuple[SlotsSnapshot, ...] = (),
    trying: tuple[str, ...] = (),
    leaving: tuple[str, ...] = (),
    by_resource: tuple[str, ...] = (),
    asks_daemon: bool = True,
) -> Known:
    packages = {each.name: each for each in found if isinstance(each, PackageSnapshot)}
    nodes = {each.name: each for each in found if isinstance(each, NodeSnapshot)}

    def holders(order: int) -> tuple[str, ...]:
        return tuple(sorted(each.name for each in nodes.values() if each.order == order and each.state == "idle"))

    return Known(
        NOW,
        packages.get,
        nodes.get,
        holders,
        slots,
        trying,
        leaving=lambda _name: leaving,
        by_resource=lambda _name: by_resource,
        asks_daemon=asks_daemon,
    )
