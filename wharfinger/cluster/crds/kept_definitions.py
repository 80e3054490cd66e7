"""The definitions of ``crds/`` after they were applied: one that somebody deletes is noticed, told, and brought back.

They belong to no release and are no rows (:mod:`~wharfinger.cluster.crds.definitions`), so the monitor of drift knows nothing
of them. Here is remembered who brought which; one watch of all definitions tells which are gone, as long as any is kept. What
is missing is drift of everybody who brought it: told, and brought back where a package's drift is corrected. Then its custom
resources come back, those that charts have, as any object does that drifted.

Invariants:

* Only what is not there is written, after a look: one that somebody else has put there meanwhile, a newer one say, is his.
* Of several that brought one, the last is who brings it back, as long as it is kept; then the one before.
* What is deleted again and again is brought back ever more rarely (:func:`pause_before`).
* After each await it is asked again who keeps a definition: a version without it, or an uninstall, may have come meanwhile.
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
"""How long one attempt waits until a definition is established."""
FIRST_PAUSE_S: Final = 15.0
LAST_PAUSE_S: Final = 600.0
QUIET_S: Final = 600.0
"""Who left it alone for so long is not fought any more."""


@dataclass(frozen=True, slots=True)
class _Brought:
    """One definition as an owner brought it."""

    key: ObjectKey
    body: PackedJson
    mode: DriftMode


@dataclass(slots=True)
class _Restored:
    """How often one was brought back in a row, and when last."""

    times: int = 0
    at: float = float("-inf")
    due: float = float("-inf")
    """Not brought back again before that."""


@dataclass(slots=True)
class _Known:
    brought: dict[tuple[Owner, str], dict[str, _Brought]] = field(default_factory=dict)
    """By owner and by which of its steps, then by name; whoever came last is last."""
    there: set[str] = field(default_factory=set)
    """All definitions that the watch told of."""
    missing: dict[str, None] = field(default_factory=dict)
    restored: dict[str, _Restored] = field(default_factory=dict)


class KeptDefinitions:
    """``rests``: for whom nothing is done now; ``confined``: who may write no definitions now; ``told``: an owner, and what it
    brought and is gone; ``back``: a kind that is served again. None may block. :meth:`run` is its task.
    """

    def __init__(
        self,
        client: ClusterClient,
        watches: SharedWatches,
        definitions: Definitions,
        *,
        rests: Callable[[Owner], bool],
        confined: Confined,
        told: Callable[[Owner, tuple[Drift, ...]], None],
        back: Callable[[str], None],
    ) -> None:
        self._client = client
        self._watches = watches
        self._definitions = definitions
        self._rests = rests
        self._confined = confined
        self._told = told
        self._back = back
        self._known = _Known()
        self._queue: WorkQueue[str] = WorkQueue()
        self._watching: ExitStack | None = None
        self._subscription: WatchSubscription | None = None
        self._begun = trio.Event()
        self._listing = trio.CancelScope()
        """The wait for the first list of the watch."""

    async def keep(self, owner: Owner, step: str, crds: Collection[JsonObject], mode: DriftMode) -> None:
        """Keep what a step of an owner brought, instead of what it brought before. What is deleted already is missing."""
        found = [(await key_of(self._client, NOBODY, crd), crd) for crd in crds]
        before = self.missing(owner)
        self._known.brought.pop((owner, step), None)
        if found:
            brought = {key.name: _Brought(key, PackedJson(encode_json(crd)), mode) for key, crd in found}
            self._known.brought[(owner, step)] = brought
            self._watch(found[0][0].resource)
        self._end_what_nobody_keeps()
        for key, _ in found:
            if key.name not in self._known.there:
                await self._look(key)
        self._tell_if_other(owner, before)

    def let_go(self, owner: Owner) -> None:
        """Nothing is kept for it any more; its definitions stay as they are."""
        before = self.missing(owner)
        for place in [place for place in self._known.brought if place[0] == owner]:
            del self._known.brought[place]
        self._end_what_nobody_keeps()
        self._tell_if_other(owner, before)

    def attend(self, owner: Owner) -> None:
        """What is missing of it is brought back again, after it was to rest."""
        for drift in self.missing(owner):
            self._queue.add(drift.identity.name)

    def missing(self, owner: Owner) -> tuple[Drift, ...]:
        """What it brought and is not there, by name."""
        missing = {name: self._brought(name).get(owner) for name in sorted(self._known.missing)}
        return tuple(
            Drift(identity_of(one.key), missing=True)
            for one in missing.values()
            if one is not None and one.mode is not DriftMode.OFF
        )

    def changed(self, change: RawChange) -> None:
        """A definition is there, or is gone. Never waits."""
        name = change.key.name
        if change.type is WatchType.DELETED:
            self._known.there.discard(name)
            self._is_gone(name)
        else:
            self._known.there.add(name)
            self._is_there(name)

    async def run(self) -> None:
        """Bring back what is missing, until cancelled."""
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

    def _brought(self, name: str) -> Mapping[Owner, _Brought]:
        """By whom, the last one last."""
        return {of: brought[name] for (of, _), brought in self._known.brought.items() if name in brought}

    def _is_gone(self, name: str) -> None:
        if not self._brought(name) or name in self._known.missing:
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
        for owner in self._brought(name):
            self._told(owner, self.missing(owner))

    def _tell_if_other(self, owner: Owner, before: tuple[Drift, ...]) -> None:
        if (after := self.missing(owner)) != before:
            self._told(owner, after)

    async def _look(self, key: ObjectKey) -> None:
        """Ask whether one is there; where there is no answer, it is asked for again later."""
        try:
            is_there = await look_up(self._client, key) is not None
        except ClusterError as error:
            log.debug("%s cannot be looked up yet: %s", key, error)
            self._queue.add(key.name)
            return
        if is_there:
            self._is_there(key.name)
        else:
            self._is_gone(key.name)

    def _restorer(self, name: str) -> tuple[Owner, _Brought] | None:
        """Return who brings it back, if anybody may now."""
        able = [
            (owner, one)
            for owner, one in self._brought(name).items()
            if one.mode is DriftMode.CORRECT and not self._rests(owner) and not self._confined(owner)
        ]
        return able[-1] if able else None

    async def _attend(self, name: str) -> None:
        """Look at one that may be missing, and bring it back if it is its time."""
        brought = tuple(self._brought(name).values())
        if not brought:
            self._queue.succeeded(name)
            await trio.lowlevel.checkpoint()
            return
        try:
            await self._restore(name, brought[-1].key)
        except (ClusterError, trio.TooSlowError) as error:
            log.warning("%s was deleted by somebody, and cannot be brought back yet: %s", brought[-1].key, error)
            self._queue.failed(name)
        except Exception:  # the other definitions are kept all the same
            log.exception("%s was deleted by somebody, and cannot be brought back yet", brought[-1].key)
            self._queue.failed(name)
        else:
            self._queue.succeeded(name)

    async def _restore(self, name: str, key: ObjectKey) -> None:
        """Raises ClusterError, trio.TooSlowError, and ShapeError for a definition without names."""
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
            "release %s: %s was deleted by somebody (the API server does not say who), with all objects of its kind; "
            "it is brought back, and those objects that charts have follow",
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
        """Look at what the first list lacks: what was deleted between its apply and the list is in no event."""
        while True:
            await self._begun.wait()
            self._begun = trio.Event()
            if (subscription := self._subscription) is None:
                continue
            with trio.CancelScope() as self._listing:
                # Without a list each is looked up; the watch goes on trying.
                with suppress(ClusterError, ShapeError):
                    await subscription.wait_first_list()
                for name in {name for brought in self._known.brought.values() for name in brought}:
                    if name not in self._known.there:
                        self._queue.add(name)

    def _end_watch(self) -> None:
        if self._watching is not None:
            self._watching.close()
            self._listing.cancel()
            self._watching = self._subscription = None
            self._known.there.clear()

    def _end_what_nobody_keeps(self) -> None:
        kept = {name for brought in self._known.brought.values() for name in brought}
        for name in [name for name in self._known.missing if name not in kept]:
            del self._known.missing[name]
        for name in [name for name in self._known.restored if name not in kept]:
            del self._known.restored[name]
        if not kept:
            self._end_watch()


def pause_before(times: int) -> float:
    """How long to wait before one is brought back that was brought back so many times in a row already."""
    return 0.0 if not times else float(min(FIRST_PAUSE_S * 2 ** min(times - 1, 10), LAST_PAUSE_S))


def group_kind_of(crd: JsonObject) -> str:
    """``Widget.example.test``: the kind that a definition defines, as identities have it. Raises ShapeError."""
    group, kind = find_str(crd, "spec", "group"), find_str(crd, "spec", "names", "kind")
    return f"{kind}.{group}"
