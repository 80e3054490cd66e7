"""The gate before a controller's work: it checks whether all objects that a node needs are ready.

The result depends on the state of each needed object, and on the level that the fixpoint engine sets:

=========  ==================================  ====================================  =====================
level      the object is absent                the object exists, but is not done    the object has failed
=========  ==================================  ====================================  =====================
NONE       block: it may still be created      block                                 a derived failure
CASCADE    a failure that names it             block                                 a derived failure
FORCE      a failure that names it             a failure: a cycle, or never done     a derived failure
=========  ==================================  ====================================  =====================

If a file declares an absent object, and the node that builds the file is not done or has failed, CASCADE and FORCE check that
node instead: the object is absent only because that node has not built it.

If a node has reasons to block and reasons to fail, it blocks. So it fails only when the state of everything that it needs is
final. The only exception is a node that names itself: it fails immediately. There are no timeouts.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from wharfinger.offline.controllers.built_files import builders_of
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import SCHEDULABLE, SECRET
from wharfinger.offline.store.status import State
from wharfinger.offline.store.store import ObjectStore, Place
from wharfinger.runtime.fixpoint.model import Id, Level

MOST_SHOWN: Final = 5


class ReconcileError(Exception):
    """An object cannot be reconciled, and the reason is not the failure of another object (a primary failure).

    ``place`` is the place of the cause, if the cause is not the object itself.
    """

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.place = place


class BlockedError(Exception):
    """An object lacks other objects, which may still be created."""

    def __init__(self, lacks: tuple[Id, ...]) -> None:
        super().__init__(", ".join(map(shown, lacks)))
        self.lacks = lacks


class DependencyFailedError(Exception):
    """Other objects that an object needs have failed. The failure of this object is derived from those failures."""

    def __init__(self, failed: tuple[Id, ...]) -> None:
        super().__init__(", ".join(map(shown, failed)))
        self.failed = failed


class MissingError(ReconcileError):
    """An object names objects that will not be created. This failure is primary: it has no other failure as its cause. The node
    runs again if one of the missing objects is created after all.
    """

    def __init__(self, message: str, missing: tuple[Id, ...]) -> None:
        super().__init__(message)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Need:
    """A reference from one object to another: the id of the other object, and the field that names it."""

    id: Id
    field: str


@dataclass(slots=True)
class Gate:
    """The check, in one run of one node, whether everything that the node needs is ready. ``reads`` collects everything that
    the node has read.

    ``selected`` are objects that the node found through a selection (``selections.py``). Instead of them, ``reads`` has the
    selection: a change of the selection wakes the node, so the objects need not wake it.
    """

    who: Id
    level: Level
    loop: tuple[Id, ...]
    store: ObjectStore
    tree: Tree
    reads: set[Id] = field(default_factory=set)
    selected: set[Id] = field(default_factory=set)

    def require(self, needs: Iterable[Need]) -> None:
        """Check that everything needed is ready. Raises BlockedError, DependencyFailedError or ReconcileError."""
        lacks: list[Id] = []
        failed: list[Id] = []
        missing: list[Need] = []
        stuck: list[Need] = []
        for need in needs:
            self.reads.add(need.id)
            if need.id == self.who:
                raise ReconcileError(f"{need.field} names {shown(self.who)} itself; remove it")
            if self.store.get(need.id) is not None:
                awaited: tuple[Need, ...] = (
                    (need,) if need.id.kind in SCHEDULABLE and not self._is_ready(need.id) else ()
                )
            elif self.level is Level.NONE:
                lacks.append(need.id)
                continue
            else:
                awaited = self._unfinished(need)
                missing += () if awaited else (need,)
            for each in awaited:
                if self.store.status(each.id).has_failed:
                    failed.append(each.id)
                elif self.level is Level.FORCE:
                    stuck.append(each)
                else:
                    lacks.append(each.id)
        if lacks:
            raise BlockedError(tuple(sorted(lacks)))
        if missing:
            message = "; ".join(self._missing(each) for each in missing[:MOST_SHOWN])
            raise MissingError(message, tuple(sorted(each.id for each in missing)))
        if failed:
            raise DependencyFailedError(tuple(sorted(failed)))
        if stuck:
            raise ReconcileError(self._stuck(stuck))

    def _is_ready(self, who: Id) -> bool:
        return self.store.status(who).is_ready

    def _unfinished(self, need: Need) -> tuple[Need, ...]:
        """Return the nodes that may still make the needed object, which does not exist: they are not done, or have failed."""
        builders = builders_of(need.id, self.store, self.tree)
        found = tuple(Need(each, need.field) for each in builders if each != self.who and not self._is_ready(each))
        self.reads.update(each.id for each in found)
        return found

    def _missing(self, need: Need) -> str:
        message = f"{need.field}: {shown(need.id)} does not exist"
        declared = self.tree.declared.get(need.id)
        if declared is not None:
            builders = builders_of(need.id, self.store, self.tree)
            if not builders:
                return f"{message}: {declared.place} declares it, but nothing builds that file; list it in a kustomization.yaml"
            named = shown(builders[0])
            if self.store.status(builders[0]).state is State.SKIPPED:
                return f"{message}: {declared.place} declares it, but {named}, which builds that file, is skipped"
            return (
                f"{message}: {declared.place} declares it, but {named} builds it under another name, or leaves it out"
            )
        if need.id.kind == SECRET:
            message += ", and no ExternalSecret makes it; if only the cluster has it, use --allow-missing-secrets"
        close = self._similar(need.id)
        return f"{message}; did you mean {close.namespace}/{close.name}?" if close is not None else message

    def _similar(self, who: Id) -> Id | None:
        """Return the object that was probably meant: an object with a similar name, or with the same name in another
        namespace.
        """
        known = [each.id for each in self.store.list(who.kind) if each.id != self.who]
        elsewhere = [each for each in known if each.name == who.name]
        if elsewhere:
            return elsewhere[0]
        beside = {each.name: each for each in known if each.namespace == who.namespace}
        close = difflib.get_close_matches(who.name, sorted(beside), n=1)
        return beside[close[0]] if close else None

    def _stuck(self, stuck: list[Need]) -> str:
        if self.loop:
            return f"dependency cycle: {' → '.join(map(shown, (*self.loop, self.loop[0])))}"
        return "; ".join(f"{each.field}: {shown(each.id)} never becomes ready" for each in stuck[:MOST_SHOWN])
