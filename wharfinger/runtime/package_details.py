"""Snapshots of what belongs to one package besides its state: its objects, Events, log lines, hook snapshots, and what the next
apply would change.

Frozen, and read by an Inspector (:mod:`wharfinger.runtime.inspector`). Texts in them are masked as far as the runtime knows the
secrets; the server that shows them redacts them again.
"""

from dataclasses import dataclass
from datetime import datetime

from wharfinger.formats.json.value import JsonObject


class DetailsUnavailableError(Exception):
    """The API server, which has the details, does not answer or refuses; the message says why. Asking again may help."""


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """One object of a package's release.

    ``kind`` is ``Kind.group``. ``health`` is "Current", "InProgress", "Failed" or "Absent", with a ``message``. ``apply`` is
    "Done", "Pending", "Refreshing" or "Error" (with the ``error``); "" if nothing is known. ``drift`` names the fields that
    differ from what was applied, and the managers that have set these fields.
    """

    package: str
    kind: str
    api_version: str
    namespace: str
    name: str
    health: str
    message: str = ""
    apply: str = ""
    error: str = ""
    drift: str = ""
    labels: tuple[str, ...] = ()
    """The labels, each as ``key=value``, sorted."""


@dataclass(frozen=True, slots=True)
class ClusterEventSnapshot:
    """One Kubernetes Event. ``last`` is the time at which it happened last; None if the Event has none. ``type`` is "Normal" or
    "Warning"."""

    type: str
    reason: str
    subject: str
    message: str
    count: int = 1
    first: datetime | None = None
    last: datetime | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class LogLineSnapshot:
    """One line of the daemon's log about a package; ``number`` counts the lines of the package from 1. ``hook`` printed it; "" if
    it is the daemon's own line."""

    number: int
    time: datetime
    level: str
    message: str
    hook: str = ""


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """The kept lines of a package, oldest first, after a number that the question named.

    ``dropped``: how many lines after that number are not kept any more. ``run`` identifies the process of the daemon that
    numbered the lines.
    """

    package: str
    lines: tuple[LogLineSnapshot, ...]
    dropped: int = 0
    run: str = ""


@dataclass(frozen=True, slots=True)
class FieldChangeSnapshot:
    """One field that an apply would change: its JSON pointer, and its value before and after as JSON; "": absent."""

    pointer: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class ObjectChangeSnapshot:
    """The change of one object by the next apply.

    ``change`` is "create", "change", "delete", "keep" (it left the chart, and stays in the cluster) or "unknown". ``by`` says how
    the change is known: "dry run" (the API server was asked), "chart" (it could not be asked, so the chart's object is shown).
    ``note`` says why, and what is not predicted.
    """

    object: str
    change: str
    by: str
    fields: tuple[FieldChangeSnapshot, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class DifferenceSnapshot:
    """The changes that the next apply of a package would make in the cluster: objects that stay the same are only counted.

    If the changes are not known, ``problem`` says why; otherwise it is empty. ``notes`` are about the apply as a whole: hooks
    that would run, definitions that would come first.
    """

    package: str
    changes: tuple[ObjectChangeSnapshot, ...] = ()
    unchanged: int = 0
    notes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HookSnapshotsSnapshot:
    """The snapshots that one hook would get now, by binding: for each object ``object`` and ``filterResult``, as configured."""

    hook: str
    bindings: JsonObject


@dataclass(frozen=True, slots=True)
class DaemonTaskSnapshot:
    """One running task of the daemon.

    ``depth`` is its place in the tree: it was started by the last task above it that has a smaller depth. ``package``: the
    package that it works for. ``cause``: why the work of that package began. ``at`` is the function that it waits in.
    """

    name: str
    depth: int
    package: str = ""
    cause: str = ""
    at: str = ""
