"""The bodies that the fixpoint engine runs for a tree: each runs the controller of its object's kind.

A body publishes nothing before it is done. Its objects are put into the store and emitted with its outcome, without an await
in between, so that no other body sees a part of it. Objects that it made before and makes no more are removed.

Two producers of one object: the one with the lower id owns it, whichever came first, and a warning names both. An object
that is rendered replaces one that a file declares.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.controller import Controller, Produced
from wharfinger.offline.controllers.gate import (
    BlockedError,
    DependencyFailedError,
    Gate,
    MissingError,
    ReconcileError,
)
from wharfinger.offline.discovery.documents import is_manifest
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.store.identity import object_id, shown
from wharfinger.offline.store.kinds import CONFIG_MAP, SCHEDULABLE, SECRET
from wharfinger.offline.store.status import READY, State, Status, blocked_by
from wharfinger.offline.store.store import ObjectStore, Place, Stored
from wharfinger.runtime.fixpoint.converge import World
from wharfinger.runtime.fixpoint.model import (
    Blocked,
    DependencyFailed,
    Emission,
    Id,
    Level,
    Outcome,
    Terminal,
)

_KEPT_IN_STORE: Final = SCHEDULABLE | {CONFIG_MAP, SECRET}
"""The kinds that other nodes can need. Everything else is output only."""


@dataclass(frozen=True, slots=True)
class Made:
    """The objects that a node made in its last finished run."""

    produced: Produced
    published: tuple[Id, ...]


class TreeBodies:
    """The bodies of one run, and their results. All on one thread."""

    def __init__(self, tree: Tree, store: ObjectStore, controllers: Mapping[str, Controller], world: World) -> None:
        self.made: dict[Id, Made] = {}
        self.reads: dict[Id, tuple[Id, ...]] = {}
        self.places: dict[Id, Place] = {}
        """The places of causes that are not the failed objects themselves."""
        self._tree = tree
        self._store = store
        self._controllers = controllers
        self._world = world
        self._loops: dict[Id, tuple[Id, ...]] = {}

    async def run(self, who: Id, level: Level, loop: tuple[Id, ...], /) -> Outcome:
        """Run the controller of a node, and turn its result into the engine's."""
        stored = self._store.get(who)
        if stored is None:
            return Terminal("gone")
        for each in loop:
            self._loops.setdefault(each, loop)
        gate = Gate(who, level, loop, self._store, self._tree)
        self.places.pop(who, None)
        try:
            produced = await self._controllers[who.kind].reconcile(stored, gate)
        except BlockedError as error:
            return Blocked(error.lacks)
        except DependencyFailedError as error:
            return self._failed(who, gate, self._derived(who, error.failed), error.failed)
        except MissingError as error:
            return self._failed(who, gate, Status(State.FAILED, str(error)), error.missing)
        except ReconcileError as error:
            if error.place is not None:
                self.places[who] = error.place
            return self._failed(who, gate, Status(State.FAILED, str(error)))
        except FormatError as error:  # a field of the object has another shape than its kind has
            return self._failed(who, gate, Status(State.FAILED, str(error)))
        return self._done(stored, gate, produced)

    def reruns_at_drain(self, _who: Id, /) -> bool:
        """Return False: every node names the ids that it reads."""
        return False

    def _derived(self, who: Id, failed: tuple[Id, ...]) -> Status:
        """Return the status of a derived failure; the members of one cycle all report the cycle itself."""
        loop = self._loops.get(who)
        if loop is not None and any(each in loop for each in failed):
            start = loop.index(who)
            turned = (*loop[start:], *loop[:start], who)
            return Status(State.FAILED, f"dependency cycle: {' → '.join(map(shown, turned))}")
        return blocked_by(failed)

    def _failed(self, who: Id, gate: Gate, status: Status, causes: tuple[Id, ...] = ()) -> Outcome:
        self.reads[who] = tuple(sorted(gate.reads))
        self._store.set_status(who, status)
        self._publish(who, Produced())
        self.made.pop(who, None)
        result = f"{status.state}: {status.message}"
        return DependencyFailed(causes, result) if causes else Terminal(result, reads=self.reads[who])

    def _done(self, stored: Stored, gate: Gate, produced: Produced) -> Outcome:
        who = stored.id
        try:
            published, emissions = self._publish(who, produced)
        except FormatError as error:
            return self._failed(who, gate, Status(State.FAILED, str(error)))
        self.reads[who] = tuple(sorted(gate.reads))
        self.made[who] = Made(produced, published)
        self._store.set_status(who, Status(State.SKIPPED, produced.skipped) if produced.skipped else READY)
        return Terminal(
            f"{State.SKIPPED}: {produced.skipped}" if produced.skipped else f"ready {produced.revision}",
            reads=self.reads[who],
            emissions=emissions,
        )

    def _publish(self, who: Id, produced: Produced) -> tuple[tuple[Id, ...], tuple[Emission, ...]]:
        """Put the objects that a node made into the store, and remove those that it made before."""
        made: dict[Id, JsonObject] = {}
        for obj in produced.objects:
            if not is_manifest(obj):
                raise FormatError("it renders a document without apiVersion or kind")
            each = object_id(obj, produced.namespace or self._tree.namespace)
            if each.kind in _KEPT_IN_STORE and each != who:
                made.setdefault(each, obj)
        published: list[Id] = []
        emissions: list[Emission] = []
        for each, obj in made.items():
            before = self._store.get(each)
            if before is not None and before.producer is not None and before.producer < who:
                continue
            stored, _ = self._store.add(each, obj, producer=who)
            published.append(each)
            emissions.append(Emission(each, stored.digest, runnable=each.kind in SCHEDULABLE))
        before_this = self.made.get(who)
        for gone in sorted(set(before_this.published if before_this else ()) - set(published)):
            stored_gone = self._store.get(gone)
            if stored_gone is not None and stored_gone.producer == who:
                self._store.remove(gone)
                self._world.removed(gone)
        return tuple(published), tuple(emissions)
