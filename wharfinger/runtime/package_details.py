"""Snapshots of details that `PackageSnapshot` does not have: the objects of one package, its Events, log lines and hook
snapshots, and the changes that the next apply would make; also the running tasks of the daemon.

An Inspector (:mod:`wharfinger.runtime.inspector`) returns these frozen objects. Texts in them are masked as far as the runtime
knows the secrets; the server that shows them redacts them again.
"""

from dataclasses import dataclass
from datetime import datetime

from wharfinger.formats.json.value import JsonObject


class DetailsUnavailableError(Exception):
    """The API server, which has the details, does not answer, or refuses the request; the message says why. A retry may help."""


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """One object of a package's release.

    ``kind`` is ``Kind.group``. ``health`` is "Current", "InProgress", "Failed", "Absent" or "Unknown" (not watched), with a
    ``message``. ``apply`` is "Done", "Pending", "Refreshing" or "Error" (with the ``error``); "" if nothing is known. ``drift``
    names the fields that differ from what was applied, and the managers that have set these fields; "gone" if the object is
    missing.
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
    """One Kubernetes Event. ``first`` and ``last`` are the times at which it happened first and last; each is None if the Event
    does not state it. ``type`` is "Normal" or "Warning"."""

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
    """One line of the daemon's log about a package. ``number`` counts the lines of the package from 1. ``hook`` is the name of
    the hook that printed the line; "" if the daemon itself wrote it.
    """

    number: int
    time: datetime
    level: str
    message: str
    hook: str = ""


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """The lines of a package's log whose numbers are above the number ``after`` in the request, oldest first, as far as the
    daemon still keeps them.

    ``dropped`` is the number of lines above ``after`` that the daemon does not keep any more. ``run`` identifies the process of
    the daemon that numbered the lines.
    """

    package: str
    lines: tuple[LogLineSnapshot, ...]
    dropped: int = 0
    run: str = ""


@dataclass(frozen=True, slots=True)
class FieldChangeSnapshot:
    """One field that an apply would change: its JSON pointer, and its values before and after the apply as JSON. "" means
    that the field is absent.
    """

    pointer: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class ObjectChangeSnapshot:
    """The change of one object by the next apply.

    ``change`` is "create", "change", "delete", "keep" (the object is no longer in the chart, but stays in the cluster) or
    "unknown". ``by`` says how the change is known: "dry run" (the API server answered a dry run), or "chart" (no dry run was
    possible, so the chart's object is shown). ``note`` says why no dry run was possible, and which parts of the change are not
    predicted.
    """

    object: str
    change: str
    by: str
    fields: tuple[FieldChangeSnapshot, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class DifferenceSnapshot:
    """The changes that the next apply of a package would make in the cluster. Objects that stay the same are only counted.

    If the changes are not known, ``problem`` says why; otherwise ``problem`` is empty. ``notes`` are about the apply as a
    whole, such as the hooks that it would run, or the CRDs that it would apply first.
    """

    package: str
    changes: tuple[ObjectChangeSnapshot, ...] = ()
    unchanged: int = 0
    notes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HookSnapshotsSnapshot:
    """The snapshots that one hook would get now, by binding. The configuration of the binding determines whether each object has
    the key ``object``, the key ``filterResult``, or both.
    """

    hook: str
    bindings: JsonObject


@dataclass(frozen=True, slots=True)
class DaemonTaskSnapshot:
    """One running task of the daemon.

    ``depth`` is its level in the tree of tasks: its parent is the nearest earlier task in the list that has a smaller depth.
    ``package`` is the package that the task works for, and ``cause`` the reason why that work began. ``at`` is the function in
    which the task waits.
    """

    name: str
    depth: int
    package: str = ""
    cause: str = ""
    at: str = ""
