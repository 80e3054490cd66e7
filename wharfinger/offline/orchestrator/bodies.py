"""The bodies that the fixpoint engine runs for a tree. Each body runs the controller for the kind of its object.

A body publishes nothing before it is done. Then its objects are stored and emitted with its outcome, without an await in between,
so that no other body sees only some of them. Objects that the body made in its previous run but not in this run are removed.

If two producers make the same object, the producer with the lower id owns it, even if the other one was first, and a warning
names both. A rendered object replaces one that a file declares. A real Secret always replaces a stand-in
(:mod:`~wharfinger.offline.building.stand_ins`) with the same name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find_str
from wharfinger.offline.building.stand_ins import ANNOTATION, is_stand_in, may_have_stand_in, stand_in
from wharfinger.offline.controllers.controller import Controller, NodeResult
from wharfinger.offline.controllers.gate import (
    BlockedError,
    DependencyFailedError,
    Gate,
    MissingError,
    ReconcileError,
)
from wharfinger.offline.discovery.documents import flattened, is_manifest
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.orchestrator.progress import RunProgress
from wharfinger.offline.store.identity import naming_problem, object_id, shown
from wharfinger.offline.store.kinds import DATA, SCHEDULABLE, SECRET
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

_NUL: Final = b"\\u0000"
"""The escape of a NUL character in JSON."""
_MAX_PATH: Final = 200
"""The maximum length of a path in a message, in characters."""


@dataclass(frozen=True, slots=True)
class MadeObjects:
    """The objects that a node made in its last finished run."""

    produced: NodeResult
    published: tuple[Id, ...]


class TreeBodies:
    """The bodies of one run, and their results. Not thread-safe."""

    def __init__(
        self,
        tree: Tree,
        store: ObjectStore,
        controllers: Mapping[str, Controller],
        world: World,
        progress: RunProgress | None = None,
    ) -> None:
        self.made: dict[Id, MadeObjects] = {}
        self.reads: dict[Id, tuple[Id, ...]] = {}
        self.places: dict[Id, Place] = {}
        """The places of the causes of failures, by the ids of the failed objects. An object is left out if the cause is in the
        place of the object itself.
        """
        self._tree = tree
        self._store = store
        self._controllers = controllers
        self.progress = progress or RunProgress()
        self.world = world
        """The `World` through which events from outside reach the engine. It is replaced before each run of the engine."""
        self._loops: dict[Id, tuple[Id, ...]] = {}
        self._kept = set(SCHEDULABLE | DATA)
        """The kinds of rendered objects that are put into the store. Objects of other kinds are only output, until a node names
        one of them.
        """

    async def run(self, who: Id, level: Level, loop: tuple[Id, ...], /) -> Outcome:
        """Run the controller of a node, and turn its result into an outcome of the engine."""
        self.progress.begin(who)
        outcome: Outcome | None = None
        try:
            outcome = await self._reconciled(who, level, loop)
            return outcome
        finally:
            self.progress.end(who, done=not isinstance(outcome, Blocked))

    async def _reconciled(self, who: Id, level: Level, loop: tuple[Id, ...]) -> Outcome:
        stored = self._store.get(who)
        if stored is None:
            return Terminal("gone")
        for each in loop:
            self._loops.setdefault(each, loop)
        gate = Gate(who, level, loop, self._store, self._tree)
        if has_nul(stored.object):
            message = "a text has a NUL character, which no file or program accepts; remove it"
            return self._failed(who, gate, Status(State.FAILED, message))
        self.places.pop(who, None)
        try:
            produced = await self._controllers[who.kind].reconcile(stored, gate)
        except BlockedError as error:
            self._store_kinds({each.kind for each in error.lacks})
            return Blocked(error.lacks)
        except DependencyFailedError as error:
            return self._failed(who, gate, self._derived_status(who, error.failed), error.failed)
        except MissingError as error:
            return self._failed(who, gate, Status(State.FAILED, str(error)), error.missing)
        except ReconcileError as error:
            if error.place is not None:
                self.places[who] = error.place
            return self._failed(who, gate, Status(State.FAILED, str(error)))
        except FormatError as error:  # a field of the object does not have the shape that its kind requires
            return self._failed(who, gate, Status(State.FAILED, str(error)))
        except OSError as error:  # for example, a path is longer than the file system allows
            message = f"{_short(str(error.filename or ''))}: cannot be read: {error.strerror or error}"
            return self._failed(who, gate, Status(State.FAILED, message))
        return self._done(stored, gate, produced)

    def reruns_at_drain(self, _who: Id, /) -> bool:
        """Return False, because the outcome of each node names all ids that the node has read."""
        return False

    def _store_kinds(self, kinds: set[str]) -> None:
        """Put objects of these kinds into the store, because a node waits for such an object. This applies to objects that are
        made from now on, and to those that were made earlier.
        """
        new = kinds - self._kept
        if not new:
            return
        self._kept |= new
        for who, made in sorted(self.made.items()):
            found: list[Id] = []
            for obj in made.produced.objects:
                each = object_id(obj, made.produced.namespace or self._tree.namespace)
                before = self._store.get(each)
                if each.kind in new and (before is None or before.producer is None):
                    stored, _ = self._store.add(each, obj, producer=who)
                    found.append(each)
                    self.world.arrived(Emission(each, stored.digest, runnable=False))
            self.made[who] = replace(made, published=(*made.published, *found))

    def _derived_status(self, who: Id, failed: tuple[Id, ...]) -> Status:
        """Return the status of a node that fails because nodes that it needs have failed. Each node of a dependency cycle
        reports the cycle itself.
        """
        loop = self._loops.get(who)
        if loop is not None and any(each in loop for each in failed):
            start = loop.index(who)
            turned = (*loop[start:], *loop[:start], who)
            return Status(State.FAILED, f"dependency cycle: {' → '.join(map(shown, turned))}")
        return blocked_by(failed)

    def _failed(self, who: Id, gate: Gate, status: Status, causes: tuple[Id, ...] = ()) -> Outcome:
        self.reads[who] = tuple(sorted(gate.reads | gate.selected))
        self._store.set_status(who, status)
        self._publish(who, NodeResult())
        self.made.pop(who, None)
        result = f"{status.state}: {status.message}"
        return DependencyFailed(causes, result) if causes else Terminal(result, reads=tuple(sorted(gate.reads)))

    def _done(self, stored: Stored, gate: Gate, produced: NodeResult) -> Outcome:
        who = stored.id
        objects = tuple(each for obj in produced.objects for each in flattened(obj) if isinstance(each, dict))
        if objects != produced.objects:
            produced = replace(produced, objects=objects)
        produced = self._with_stand_ins(produced, gate)
        try:
            published, emissions = self._publish(who, produced)
        except FormatError as error:
            return self._failed(who, gate, Status(State.FAILED, str(error)))
        self.reads[who] = tuple(sorted(gate.reads | gate.selected))
        self.made[who] = MadeObjects(produced, published)
        self._store.set_status(who, Status(State.SKIPPED, produced.skipped) if produced.skipped else READY)
        return Terminal(
            f"{State.SKIPPED}: {produced.skipped}" if produced.skipped else f"ready {produced.revision}",
            reads=tuple(sorted(gate.reads)),
            emissions=emissions,
        )

    def _with_stand_ins(self, produced: NodeResult, gate: Gate) -> NodeResult:
        """Add stand-ins for Secrets that a cluster makes from the objects, and a warning for each stand-in that the node read."""
        namespace = produced.namespace or self._tree.namespace
        made = (
            stand_in(obj, object_id(obj, namespace).namespace) for obj in produced.objects if may_have_stand_in(obj)
        )
        read = [self._store.get(who) for who in sorted(gate.reads) if who.kind == SECRET]
        warnings = (
            f"{shown(each.id)} is made in the cluster only, by {find_str(each.object, 'metadata', 'annotations', ANNOTATION)}; "
            "its values are left out, or have placeholders"
            for each in read
            if each is not None and is_stand_in(each.object)
        )
        more, notices = tuple(each for each in made if each is not None), tuple(warnings)
        if not more and not notices:
            return produced
        return replace(produced, internal=(*produced.internal, *more), warnings=(*produced.warnings, *notices))

    def _publish(self, who: Id, produced: NodeResult) -> tuple[tuple[Id, ...], tuple[Emission, ...]]:
        """Put the objects that a node has made into the store, and remove those that only its previous run made."""
        made: dict[Id, JsonObject] = {}
        for obj in (*produced.objects, *produced.internal):
            if not is_manifest(obj):
                raise FormatError("it renders a document that lacks apiVersion or kind")
            each = object_id(obj, produced.namespace or self._tree.namespace)
            if wrong := naming_problem(each):
                raise FormatError(f"it renders {shown(each)}: {wrong}")
            if each.kind in self._kept and each != who:
                made.setdefault(each, obj)
        published: list[Id] = []
        emissions: list[Emission] = []
        for each, obj in made.items():
            before = self._store.get(each)
            if before is not None and not _replaces(obj, who, before):
                continue
            stored, _ = self._store.add(each, obj, producer=who)
            published.append(each)
            emissions.append(Emission(each, stored.digest, runnable=each.kind in SCHEDULABLE))
        before_this = self.made.get(who)
        for gone in sorted(set(before_this.published if before_this else ()) - set(published)):
            stored_gone = self._store.get(gone)
            if stored_gone is not None and stored_gone.producer == who:
                self._store.remove(gone)
                self.world.removed(gone)
        return tuple(published), tuple(emissions)


def _replaces(obj: JsonObject, who: Id, before: Stored) -> bool:
    """Return whether an object that the node ``who`` makes replaces the stored object ``before``.

    A stand-in, which is made for a Secret that exists only in a cluster, never replaces a Secret of the tree.
    """
    if before.id.kind == SECRET and is_stand_in(obj) != is_stand_in(before.object):
        return is_stand_in(before.object)
    return before.producer is None or before.producer >= who


def has_nul(obj: JsonObject) -> bool:
    """Return whether a text in an object has a NUL character. Raises FormatError for an object without a JSON form."""
    return _NUL in encode_json(obj) and _has_nul(
        obj
    )  # the encoded text `\\u0000` (with a backslash) contains _NUL, too


def _has_nul(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any("\0" in key or _has_nul(each) for key, each in value.items())
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value


def _short(text: str) -> str:
    return text if len(text) <= _MAX_PATH else f"{text[: _MAX_PATH - 1]}…"
