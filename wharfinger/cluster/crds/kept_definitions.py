"""The definitions of ``crds/`` after they were applied: a deleted definition is noticed, reported, and restored.

Definitions do not belong to releases and have no rows (:mod:`~wharfinger.cluster.crds.definitions`), so the drift monitor does
not cover them. Therefore this module records which owner (release) applied which definition; that owner *keeps* the
definition. While an owner keeps any definition, one watch of all definitions reports deleted ones. A missing definition is drift
of every owner that applied it. The drift is reported, and the definition is restored if the drift policy of one of these owners
is to correct drift. Afterwards the custom resources that are in charts are restored, like any object that drifted.

Invariants:

* A definition is read first and written only if it is missing: if another writer has created it meanwhile, perhaps in a newer
  version, that definition is not changed.
* If several owners keep a definition, the owner that applied it last restores it. Owners that may not correct drift or write
  definitions at present do not count.
* A definition that is deleted again and again is restored at growing intervals (:func:`pause_before`).
* After each await the keepers of a definition are determined again: meanwhile an owner may have been upgraded to a version
  without it, or uninstalled.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.raw_object import RawChange
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.crds.definitions import NOBODY, Definitions
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.objects.desired import identity_of
from wharfinger.cluster.objects.drift_policy import DriftMode
from wharfinger.cluster.objects.lookup import key_of, look_up
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.objects.scope import Confined
from wharfinger.cluster.watch.object_stream import WatchSubscription
from wharfinger.cluster.watch.object_waits import silent
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.cluster.watch.work_queue import WorkQueue
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, ShapeError, as_object, encode_json, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

log = logging.getLogger(__name__)

ATTEMPT_S: Final = 60.0
"""The time limit of one attempt, including the wait until the definition is established."""
FIRST_PAUSE_S: Final = 15.0
LAST_PAUSE_S: Final = 600.0
QUIET_S: Final = 600.0
"""The time, in seconds, after which earlier deletions of a definition no longer count. If a definition was last restored longer
ago than this, and is deleted again, it is restored after the shortest pause.
"""


@dataclass(frozen=True, slots=True)
class _AppliedDefinition:
    """One definition in the form in which an owner applied it."""

    key: ObjectKey
    body: PackedJson
    mode: DriftMode


@dataclass(slots=True)
class _Restored:
    """The number of restorations of a definition in a row, and the time of the last one."""

    times: int = 0
    at: float = float("-inf")
    due: float = float("-inf")
    """The time before which the definition is not restored again."""


@dataclass(slots=True)
class _Known:
    applied: dict[tuple[Owner, str], dict[str, _AppliedDefinition]] = field(default_factory=dict)
    """The applied definitions. The outer key is the owner and the name of a step, which the caller chooses; the inner key is the
    name of the definition. The outer dict is in the order in which the steps were applied.
    """
    there: set[str] = field(default_factory=set)
    """The names of all definitions that exist according to the watch."""
    missing: dict[str, None] = field(default_factory=dict)
    restored: dict[str, _Restored] = field(default_factory=dict)


class KeptDefinitions:
    """The CRDs that owners keep. While :meth:`run` runs, they are restored when somebody has deleted them.

    The constructor gets four functions, none of which may block: ``corrections_paused`` returns True while no CRD is to be
    restored for an owner; ``confined`` returns True if an owner must not write CRDs now; ``told`` is called with an owner and
    its missing CRDs, and ``back`` with a kind that is served again.
    """

    def __init__(
        self,
        client: ClusterClient,
        watches: SharedWatches,
        definitions: Definitions,
        *,
        corrections_paused: Callable[[Owner], bool],
        confined: Confined,
        told: Callable[[Owner, tuple[Drift, ...]], None],
        back: Callable[[str], None],
    ) -> None:
        self._client = client
        self._watches = watches
        self._definitions = definitions
        self._corrections_paused = corrections_paused
        self._confined = confined
        self._told = told
        self._back = back
        self._known = _Known()
        self._queue: WorkQueue[str] = WorkQueue()
        self._watching: ExitStack | None = None
        self._subscription: WatchSubscription | None = None
        self._begun = trio.Event()
        self._listing = trio.CancelScope()
        """The cancel scope around the wait until the watch has received its first list."""

    async def keep(self, owner: Owner, step: str, crds: Collection[JsonObject], mode: DriftMode) -> None:
        """Keep these definitions, which the owner has applied in ``step``, instead of the definitions that the owner applied in
        this step before. The caller chooses the names of steps.

        A definition that does not exist by now counts as missing.
        """
        found = [(await key_of(self._client, NOBODY, crd), crd) for crd in crds]
        before = self.missing(owner)
        self._known.applied.pop((owner, step), None)
        if found:
            applied = {key.name: _AppliedDefinition(key, PackedJson(encode_json(crd)), mode) for key, crd in found}
            self._known.applied[(owner, step)] = applied
            self._watch(found[0][0].resource)
        self._end_what_nobody_keeps()
        for key, _ in found:
            if key.name not in self._known.there:
                await self._look(key)
        self._report_if_other(owner, before)

    def stop_keeping(self, owner: Owner) -> None:
        """Stop keeping definitions for this owner; its definitions in the cluster remain unchanged."""
        before = self.missing(owner)
        for place in [place for place in self._known.applied if place[0] == owner]:
            del self._known.applied[place]
        self._end_what_nobody_keeps()
        self._report_if_other(owner, before)

    def resume(self, owner: Owner) -> None:
        """Restore the missing definitions of an owner whose corrections are no longer paused."""
        for drift in self.missing(owner):
            self._queue.add(drift.identity.name)

    def missing(self, owner: Owner) -> tuple[Drift, ...]:
        """Return the missing definitions of an owner, sorted by name."""
        missing = {name: self._applied(name).get(owner) for name in sorted(self._known.missing)}
        return tuple(
            Drift(identity_of(one.key), missing=True)
            for one in missing.values()
            if one is not None and one.mode is not DriftMode.OFF
        )

    def changed(self, change: RawChange) -> None:
        """Record that a CRD exists, or is gone. Never waits."""
        name = change.key.name
        if change.type is WatchType.DELETED:
            self._known.there.discard(name)
            self._is_gone(name)
        else:
            self._known.there.add(name)
            self._is_there(name)

    async def run(self) -> None:
        """Restore missing definitions, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._look_after_lists, name="definitions, first list")
                while True:
                    name = await self._queue.take()
                    try:
                        await self._attend(name)
                    finally:
                        self._queue.done(name)
        finally:
            self._end_watch()

    # -- one definition

    def _applied(self, name: str) -> Mapping[Owner, _AppliedDefinition]:
        """Return, for each owner of a definition, the form of it that the owner applied; the latest owner is last."""
        return {of: applied[name] for (of, _), applied in self._known.applied.items() if name in applied}

    def _is_gone(self, name: str) -> None:
        if not self._applied(name) or name in self._known.missing:
            return
        self._known.missing[name] = None
        self._tell(name)
        restored = self._known.restored.setdefault(name, _Restored())
        now = trio.current_time()
        if now - restored.at > QUIET_S:
            restored.times = 0
        restored.due = now + pause_before(restored.times)
        self._queue.add_later(name, restored.due - now)

    def _is_there(self, name: str) -> None:
        if name in self._known.missing:
            del self._known.missing[name]
            self._tell(name)

    def _tell(self, name: str) -> None:
        for owner in self._applied(name):
            self._told(owner, self.missing(owner))

    def _report_if_other(self, owner: Owner, before: tuple[Drift, ...]) -> None:
        if (after := self.missing(owner)) != before:
            self._told(owner, after)

    async def _look(self, key: ObjectKey) -> None:
        """Look up whether a CRD exists; if the request fails, queue the CRD for another attempt."""
        try:
            is_there = await look_up(self._client, key) is not None
        except ClusterError as error:
            log.debug("%s cannot be read yet: %s", key, error)
            self._queue.add(key.name)
            return
        if is_there:
            self._is_there(key.name)
        else:
            self._is_gone(key.name)

    def _restorer(self, name: str) -> tuple[Owner, _AppliedDefinition] | None:
        """Return the owner that restores the definition, and the definition in the form in which this owner applied it. Return
        None if no owner may restore it now.
        """
        able = [
            (owner, one)
            for owner, one in self._applied(name).items()
            if one.mode is DriftMode.CORRECT and not self._corrections_paused(owner) and not self._confined(owner)
        ]
        return able[-1] if able else None

    async def _attend(self, name: str) -> None:
        """Check a definition that may be missing, and restore it if the restoration is due."""
        applied = tuple(self._applied(name).values())
        if not applied:
            self._queue.succeeded(name)
            await trio.lowlevel.checkpoint()
            return
        try:
            await self._restore(name, applied[-1].key)
        except (ClusterError, trio.TooSlowError) as error:
            log.warning("%s was deleted by another writer, and cannot be restored yet: %s", applied[-1].key, error)
            self._queue.failed(name)
        except Exception:  # a bug must not stop the restoration of other definitions
            log.exception("%s was deleted by another writer, and cannot be restored yet", applied[-1].key)
            self._queue.failed(name)
        else:
            self._queue.succeeded(name)

    async def _restore(self, name: str, key: ObjectKey) -> None:
        """Restore a missing definition if the restoration is due.

        Raises ClusterError, trio.TooSlowError, and ShapeError for a definition without names.
        """
        if await look_up(self._client, key) is not None:
            self._is_there(name)
            return
        self._is_gone(name)
        found, restored = self._restorer(name), self._known.restored.get(name)
        if found is None or restored is None:
            return
        if (left_s := restored.due - trio.current_time()) > 0:
            self._queue.add_later(name, left_s)
            return
        owner, one = found
        crd = as_object(one.body.value(), str(one.key))
        with trio.fail_after(ATTEMPT_S):
            await self._definitions.apply(owner, [crd], {}, silent)
        restored.times, restored.at = restored.times + 1, trio.current_time()
        log.warning(
            "release %s: %s was deleted by another writer (the API server does not record which), and all objects of its kind "
            "were deleted with it. The definition is restored; the objects of this kind that charts contain are restored next",
            owner,
            one.key,
        )
        self._back(group_kind_of(crd))
        self._is_there(name)

    # -- the watch

    def _watch(self, resource: ResourceType) -> None:
        if self._watching is None:
            self._watching = ExitStack()
            self._subscription = self._watching.enter_context(
                self._watches.subscribe(resource, "", "", "", self.changed)
            )
            self._begun.set()

    async def _look_after_lists(self) -> None:
        """Queue the kept definitions that the first list of the watch lacks: the watch does not report deletions that happened
        before that list.
        """
        while True:
            await self._begun.wait()
            self._begun = trio.Event()
            if (subscription := self._subscription) is None:
                continue
            with trio.CancelScope() as self._listing:
                # If the list fails, all kept definitions are queued, and each is read separately; the watch tries again.
                with suppress(ClusterError, ShapeError):
                    await subscription.wait_first_list()
                for name in {name for applied in self._known.applied.values() for name in applied}:
                    if name not in self._known.there:
                        self._queue.add(name)

    def _end_watch(self) -> None:
        if self._watching is not None:
            self._watching.close()
            self._listing.cancel()
            self._watching = self._subscription = None
            self._known.there.clear()

    def _end_what_nobody_keeps(self) -> None:
        kept = {name for applied in self._known.applied.values() for name in applied}
        for name in [name for name in self._known.missing if name not in kept]:
            del self._known.missing[name]
        for name in [name for name in self._known.restored if name not in kept]:
            del self._known.restored[name]
        if not kept:
            self._end_watch()


def pause_before(times: int) -> float:
    """Return the seconds to wait before a deleted definition is restored again, after ``times`` restorations in a row."""
    return 0.0 if not times else float(min(FIRST_PAUSE_S * 2 ** min(times - 1, 10), LAST_PAUSE_S))


def group_kind_of(crd: JsonObject) -> str:
    """Return the kind that a definition defines, as identities contain it: ``Widget.example.test``. Raises ShapeError."""
    group, kind = find_str(crd, "spec", "group"), find_str(crd, "spec", "names", "kind")
    return f"{kind}.{group}"
