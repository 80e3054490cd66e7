"""Functions that wait until objects are ready or gone. The objects are watched, not polled.

These functions have no deadline: the caller sets one. The callback ``progress`` gets the objects that are not in the wanted
state yet.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness, readiness
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

SYNC_PATIENCE_S: Final = 2.0
"""The seconds without a first list after which the reason is reported to ``progress``."""

Laggards = Mapping[ObjectKey, InProgress | Failed]
Progress = Callable[[Laggards], None]
"""A callback that gets the objects that are not in the wanted state yet, each time a state changes; it must not block."""

Judge = Callable[[ObjectKey, JsonObject | None], Readiness]
"""A function that returns the readiness of an object; it gets None if the object does not exist."""


@dataclass(frozen=True, slots=True)
class WaitReport:
    """The result of a wait: the last known state of every object."""

    states: Mapping[ObjectKey, Readiness]

    @property
    def done(self) -> bool:
        """Return whether every object is in the wanted state."""
        return not self.laggards

    @property
    def failed(self) -> Mapping[ObjectKey, Failed]:
        """Return the objects that will not become ready."""
        return {key: state for key, state in self.states.items() if isinstance(state, Failed)}

    @property
    def laggards(self) -> Laggards:
        """Return the objects that are not in the wanted state."""
        return {key: state for key, state in self.states.items() if not isinstance(state, Current)}


def silent(laggards: Laggards) -> None:
    """Ignore the progress; this is the default of ``progress``."""


async def wait_ready(client: ClusterClient, keys: Iterable[ObjectKey], *, progress: Progress = silent) -> WaitReport:
    """Wait until every object is Current, or one has Failed."""

    def judge(key: ObjectKey, obj: JsonObject | None) -> Readiness:  # noqa: ARG001 - the shape of a judge
        return InProgress("not there", absent=True) if obj is None else readiness(obj)

    return await wait_until(client, keys, judge, progress)


async def wait_gone(client: ClusterClient, uids: Mapping[ObjectKey, str], *, progress: Progress = silent) -> WaitReport:
    """Wait until each of these objects is gone. Objects are identified by UID, because another object may have taken the name."""

    def judge(key: ObjectKey, obj: JsonObject | None) -> Readiness:
        if obj is None or find_str(obj, "metadata", "uid") != uids[key]:
            return Current()
        finalizers = ", ".join(str(one) for one in find_list(obj, "metadata", "finalizers"))
        return InProgress(f"waits for finalizers: {finalizers}" if finalizers else "still there")

    return await wait_until(client, uids, judge, progress)


class _Board:
    """The last known state of each awaited object, and an event that is set when the wait is over."""

    def __init__(self, keys: Iterable[ObjectKey], progress: Progress) -> None:
        self.states: dict[ObjectKey, Readiness] = {key: InProgress("not looked up yet") for key in keys}
        self.settled = trio.Event()
        self._progress = progress
        self._settle()

    def update(self, states: Mapping[ObjectKey, Readiness]) -> None:
        """Replace known states with newer ones, and report them, unless the wait is over."""
        changed = {key: state for key, state in states.items() if self.states[key] != state}
        if changed and not self.settled.is_set():
            self.states.update(changed)
            self._progress(WaitReport(self.states).laggards)
            self._settle()

    def _settle(self) -> None:
        report = WaitReport(self.states)
        if report.done or report.failed:
            self.settled.set()


async def wait_until(client: ClusterClient, keys: Iterable[ObjectKey], judge: Judge, progress: Progress) -> WaitReport:
    """Wait until every object is Current according to ``judge``, or one has Failed."""
    board = _Board(keys, progress)
    groups: dict[tuple[ResourceType, str], list[ObjectKey]] = {}
    for key in board.states:
        groups.setdefault((key.resource, key.namespace), []).append(key)
    async with trio.open_nursery() as nursery:
        for (resource, namespace), group in groups.items():
            nursery.start_soon(_follow, client, resource, namespace, group, judge, board)
        await board.settled.wait()
        nursery.cancel_scope.cancel()
    return WaitReport(dict(board.states))


async def _follow(
    client: ClusterClient, resource: ResourceType, namespace: str, keys: list[ObjectKey], judge: Judge, board: _Board
) -> None:
    # A single object is watched by its name, because the namespace may have a thousand objects of the kind.
    only = f"metadata.name={keys[0].name}" if len(keys) == 1 else ""
    async with open_informer(client, resource, namespace, field_selector=only) as informer:
        while not await _synced(informer):
            why = informer.statistics().last_error
            board.update({key: InProgress(f"not looked up yet: {why}") for key in keys} if why else {})
        with informer.changes() as changes:
            board.update({key: judge(key, informer.get(key)) for key in keys})
            while True:
                changed = await changes.wait()
                board.update({key: judge(key, informer.get(key)) for key in keys if key in changed})


async def _synced(informer: Informer) -> bool:
    """Return whether the first list arrived within :data:`SYNC_PATIENCE_S`."""
    with trio.move_on_after(SYNC_PATIENCE_S):
        await informer.wait_synced()
        return True
    return False
