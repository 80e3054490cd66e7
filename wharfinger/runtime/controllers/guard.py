"""Nobody breaks what others need unasked: removals, disables and other versions that are held, and what lets them go on.

A package is about to go (its object is deleted, a Module says ``enabled: false``, or nothing any more, and its bundle has it
off), or to become another version. Whoever is on now and would be off for a requirement then (mandatory, another version, the
last member of an any-of group, a none-of range that it falls into) *stands in the way*, and the change is **held**: nothing of
it is begun or adopted, what is installed runs on. The scheduler answers who that is by trying it out
(`Scheduler.would_break`); packages that are off do not count, suspended ones do.

=====================================  ======================  ==================================================================
what stands in the way                 reason                  ends when
=====================================  ======================  ==================================================================
a package that stays                   WouldBreakDependents    it goes, or comes to terms, or a person says it does not matter
one that goes itself, now or later     WaitingForDependents    it is gone: so all that goes at once goes in reverse order
packages not loaded since the start    WaitingForDependents    each was loaded, or has failed once
=====================================  ======================  ==================================================================

**It ends.** A removal that has begun waits for nobody, and is known by what it still needs until it is complete. Between those
that are held an edge "waits for" is kept only if it closes no circle, so one of them always may go, unless a package that
stays is in the way. What is in a namespace that is being deleted goes, whoever needs it: it is being taken apart as it is. Two
members of one any-of group: the first may go, and is gone from then on when the second is judged. A package that cannot be
loaded (its registry is down, its files are lost) holds nobody after its first failure, and protects nobody: what it required
is not known. One whose resource only cannot be acted on (a Secret is missing) is known by what is on the disk. What had begun
before a restart goes on; what was held then is known by what is on the disk
(:mod:`wharfinger.runtime.controllers.installed_packages`).

**Nobody polls.** A hold remembers how those it depends on stood. Whatever changes a package makes the controller look at it, and
a look that finds it standing otherwise asks for a look at what it held. LOOK_S is a net below that.

What another version itself requires is known only when it is fetched: if it may not be on, it is paused like anything else, and
nothing is deleted. A version that is none (``latest``) cannot be compared, and passes.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.holds import (
    MOST_NAMED,
    Hold,
    Standing,
    is_ignoring,
    is_off_by_default,
    is_version,
    judge,
    judge_unknown,
    needs,
    reaches,
    was_being_removed,
    was_held,
)
from wharfinger.runtime.controllers.installed_packages import rest_as_installed, take_stock
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.resources.identity import ModuleId, PackageId
from wharfinger.runtime.resources.resources import FINALIZER, PackageSpec, finalizers_of, is_deleting
from wharfinger.runtime.scheduler.scheduler import Broken
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason

log = logging.getLogger(__name__)

LOOK_S: Final = 60.0
"""How often what is held is looked at, whatever happens or does not."""
_REMOVAL: Final = "the removal"
_DISABLE: Final = "spec.enabled: false"
_DEFAULT: Final = "being off by default (spec.enabled is not set)"


class Guard:
    """What is held at one runtime. ``object_of`` is a package's resource as last seen, ``look`` asks for a look at a name."""

    def __init__(
        self,
        runtime: Runtime,
        object_of: Callable[[str], JsonObject | None],
        look: Callable[[str], None],
        installed: Iterable[str],
    ) -> None:
        """``installed``: the packages of which an earlier process installed something."""
        self.runtime = runtime
        self.object_of = object_of
        self.look = look
        self.held: dict[str, Hold] = {}
        self._unheard = runtime.statements.unheard
        """Of those installed: not loaded by this process so far, and not failed either."""
        self._unheard.update(installed)
        self._leaving: dict[str, frozenset[str]] = {}
        """Removals that have begun, and what each package needs until it is gone."""
        self._off: set[str] = set()
        """Modules that may be off as they want to."""
        ending = (Operation.REMOVAL, Operation.DISABLE)
        self._begun_before = {each.package for each in runtime.tools.journal.entries() if each.operation in ending}

    # --- admission -------------------------------------------------------------------------------------------------------

    async def prepare(self, identity: PackageId, obj: JsonObject) -> None:
        """Before the first look of this process at what is to change: take what is installed for there. Raises ClusterError."""
        name, version = identity.name, find_str(obj, "spec", "packageVersion")
        said, bundled = (
            find(obj, "spec", "enabled"),
            isinstance(identity, ModuleId) and self.runtime.scheduler.facts.bundle,
        )
        off = said is False or bool(said is None and bundled and was_held(obj))
        same = version == find_str(obj, "status", "currentVersion", "version") and not off
        suspended = find(obj, "spec", "suspend") is True and not off
        if same or not self._is_new(name) or suspended or is_ignoring(obj):
            return
        stock = await take_stock(self.runtime, identity, obj)
        under_way = name in self._begun_before if off else stock is not None and stock.state.version == version
        if stock is not None and not under_way:
            rest_as_installed(self.runtime, identity, obj, stock)
            self._hear((name,))

    async def prepare_blocked(self, identity: PackageId, obj: JsonObject) -> None:
        """Before a resource that cannot be acted on is blocked: it is there as it was installed. Raises ClusterError."""
        if self._is_new(identity.name):
            placed = find_str(obj, "status", "release", "namespace")
            if isinstance(identity, ModuleId) and placed:
                identity = ModuleId(identity.name, placed)
            if (stock := await take_stock(self.runtime, identity, obj)) is not None:
                rest_as_installed(self.runtime, identity, obj, stock)
            self._hear((identity.name,))

    def admit(self, spec: PackageSpec) -> Hold | None:
        """Why what a resource asks for is not adopted; None: it may be."""
        name = spec.id.name
        self._begun_before.discard(name)
        hold = None if spec.directives.ignore_dependents else self._change(spec)
        self._note(name, hold)
        if hold is None and self._wants_off(spec):
            self._off.add(name)
        else:
            self._off.discard(name)
        return hold

    async def admit_removal(self, identity: PackageId, obj: JsonObject) -> Hold | None:
        """Why a removal does not begin; None: it may, or it is under way, or over. Raises ClusterError."""
        name, runtime = identity.name, self.runtime
        if runtime.lifecycle.is_removing(name) or runtime.is_removed(name):
            return None
        hold, node = None, runtime.scheduler.node(name)
        goes_on = name in self._begun_before or was_being_removed(obj)
        if self._is_new(name):
            stock = await take_stock(runtime, identity, obj)
            node = stock.node if stock is not None else None
            if stock is not None and not goes_on:
                rest_as_installed(runtime, identity, obj, stock)
            self._hear((name,))
        if not goes_on and not is_ignoring(obj):
            hold = self._stopping(name, _REMOVAL)
            if hold is not None and hold.reason is Reason.WOULD_BREAK_DEPENDENTS and await self._is_taken(identity):
                log.warning("%s: its namespace is being deleted, whoever needs it: %s", identity, hold.message)
                hold = None
        self._note(name, hold)
        if hold is None:
            self._leaving[name] = needs(node)
        return hold

    def going_without_asking(self, name: str) -> None:
        """Its object is no more, whoever needs it: what is left of it is removed now."""
        self._note(name, None)
        self._off.discard(name)
        self._begun_before.discard(name)
        if name in self.runtime.instances and not self.runtime.lifecycle.is_removing(name):
            self._leaving[name] = needs(self.runtime.scheduler.node(name))

    def _change(self, spec: PackageSpec) -> Hold | None:
        name = spec.id.name
        instance = self.runtime.instances.get(name)
        if instance is None or self.runtime.lifecycle.is_removing(name):
            return None
        on = self.runtime.scheduler.enabled(name) or name in self._unheard
        if on and name not in self._off and self._wants_off(spec):
            hold = self._stopping(name, _DISABLE if spec.enabled is False else _DEFAULT)
            return hold and replace(hold, off=True)
        if spec.directives.suspended:
            return None  # what it adopts is acted on when it is resumed, and judged then
        version = instance.version
        if self.runtime.lifecycle.is_suspended(name) and instance.record is not None:
            version = instance.record.state.version
        return self._becoming(name, spec.version) if version not in ("", spec.version) else None

    def _stopping(self, name: str, what: str) -> Hold | None:
        scheduler = self.runtime.scheduler
        if scheduler.node(name) is None and name not in self._unheard:
            return None  # never loaded, or not any more: nobody can be on for it
        if unknown := self._unknown():
            return judge_unknown(what, unknown)
        return self._judged(name, what, scheduler.would_break(name, None), self._gone_first(name))

    def _becoming(self, name: str, version: str) -> Hold | None:
        scheduler, what = self.runtime.scheduler, f"version {version}"
        node = scheduler.node(name)
        if (node is None and name not in self._unheard) or not is_version(version):
            return None
        if unknown := self._unknown():
            return judge_unknown(what, unknown)
        if node is None:
            return None
        return self._judged(name, what, scheduler.would_break(name, replace(node, version=version)), set())

    def _judged(self, name: str, what: str, broken: Iterable[Broken], first: set[str]) -> Hold | None:
        """With how everybody stands whose change may end it: those in the way, and whom they could build on instead."""
        going = first | {each.name for each in broken if self._is_asked(each.name)}
        broken_nodes = {each.name: self.runtime.scheduler.node(each.name) for each in broken}
        direct = {each for each, node in broken_nodes.items() if not needs(node) & broken_nodes.keys()}
        waits = self._free(first, name) or self._free(going, name)  # whoever builds on those is waited for by them
        hold = judge(what, [each for each in broken if each.name not in going], waits, direct)
        if hold is None:
            return None
        watched = hold.waits
        if hold.reason is Reason.WOULD_BREAK_DEPENDENTS:
            around = {each for node in broken_nodes.values() if node is not None for each in node.names()}
            watched = (watched | broken_nodes.keys() | around) - {name}
        return replace(hold, seen={each: self._standing(each) for each in watched})

    def _gone_first(self, name: str) -> set[str]:
        """Those on their way out that build on ``name``: asked to go, or going."""
        self._leaving = {
            each: needed for each, needed in self._leaving.items() if self.runtime.lifecycle.is_removing(each)
        }
        going = {each for each, needed in self._leaving.items() if name in needed}
        for each in self.runtime.scheduler.dependents(name):
            leaves = self._is_asked(each) or self._is_uninstalling(each)
            if leaves and name in needs(self.runtime.scheduler.node(each)):
                going.add(each)
        return going

    async def _is_taken(self, identity: PackageId) -> bool:
        """The namespace of its release is being deleted, and what is installed with it: holding it keeps nothing."""
        cluster = self.runtime.tools.cluster
        try:
            resource = await cluster.resource_type("v1", "Namespace")
            return is_deleting(await cluster.get(ObjectKey(resource, "", identity.namespace)))
        except ClusterError as error:
            if error.transient:
                raise
            return False

    def _free(self, going: Iterable[str], name: str) -> set[str]:
        """Without those that wait for ``name`` themselves: somebody has to be the first."""
        waits = {each: hold.waits for each, hold in self.held.items()}
        return {each for each in going if not reaches(waits, each, name)}

    # --- what is known of others -----------------------------------------------------------------------------------------

    def _is_new(self, name: str) -> bool:
        return name in self._unheard and name not in self.runtime.instances

    def _is_asked(self, name: str) -> bool:
        """Somebody wants a package gone, or off that is on."""
        obj = self.object_of(name)
        said, scheduler = find(obj, "spec", "enabled"), self.runtime.scheduler
        off = said is False or (said is None and is_off_by_default(scheduler.node(name), scheduler.facts))
        return obj is not None and (is_deleting(obj) or (off and scheduler.enabled(name)))

    def _wants_off(self, spec: PackageSpec) -> bool:
        """A Module is to be off, by its resource's word, or for the lack of one."""
        if spec.enabled is None:
            scheduler = self.runtime.scheduler
            return is_off_by_default(scheduler.node(spec.id.name), scheduler.facts)
        return not spec.enabled

    def _is_uninstalling(self, name: str) -> bool:
        """A Disable takes it out of the cluster; its status says first that nothing is left."""
        instance = self.runtime.instances.get(name)
        return bool(instance and instance.disabling and instance.disabling[1] and instance.status.version)

    def _standing(self, name: str) -> Standing:
        scheduler = self.runtime.scheduler
        going = self.runtime.lifecycle.is_removing(name) or self._is_uninstalling(name)
        return Standing(scheduler.node(name), scheduler.decision(name), going, self._is_asked(name))

    def _unknown(self) -> set[str]:
        """Those of which it is not known what they require."""
        self._hear([each for each in self._unheard if self._is_known(each)])
        return self._unheard

    def _is_known(self, name: str) -> bool:
        """It was loaded, or cannot be; or it is not ours any more."""
        obj, instance = self.object_of(name), self.runtime.instances.get(name)
        if obj is None or (is_deleting(obj) and FINALIZER not in finalizers_of(obj)):
            return True
        if instance is None:
            return False
        early = (instance.status.stages[stage].truth for stage in (Stage.FETCHED, Stage.LOADED))
        if instance.loaded_once or instance.status.blocked is not None or Truth.FALSE in early:
            return True
        # Suspended, it is read once, if its files are there.
        return self.runtime.lifecycle.is_suspended(name) and not self.runtime.queues.dump_one(name).tasks

    # --- waking ----------------------------------------------------------------------------------------------------------

    def _note(self, name: str, hold: Hold | None) -> None:
        if hold is None:
            self.held.pop(name, None)
        else:
            self.held[name] = hold

    def _hear(self, names: Iterable[str]) -> None:
        """Of a few that are left each is named where it is waited for, of many about how many they are."""
        before = len(self._unheard)
        self.runtime.statements.heard(names)
        left = len(self._unheard)
        if left < before and (left <= MOST_NAMED or left.bit_length() < before.bit_length()):
            for each in sorted(each for each, hold in self.held.items() if hold.unknown):
                self.look(each)

    def looked(self, name: str) -> None:
        """A package was looked at: what is held for it is looked at, too, if it stands otherwise than it did."""
        if name in self._unheard and self._is_known(name):
            self._hear((name,))
        held_for = [each for each, hold in self.held.items() if name in hold.seen]
        if held_for:
            standing = self._standing(name)
            for each in sorted(each for each in held_for if self.held[each].seen[name] != standing):
                self.look(each)

    # --- status ----------------------------------------------------------------------------------------------------------

    def say_removal(self, name: str, generation: int, hold: Hold) -> None:
        """Tell why a removal does not begin, which the object of this ``generation`` asks for."""
        instance = self.runtime.instances.get(name)
        if instance is not None and name not in self._unheard:  # what it says while it is loaded is waited for
            now = self.runtime.now()
            status = statuses.removal_held(instance.status, generation, hold.reason, hold.message, now)
            self.runtime.set_status(instance, status)

    def say(self, spec: PackageSpec, hold: Hold) -> None:
        """Tell why nothing of what a resource asks for is adopted; what rests only until others are known is no failure."""
        name, instance = spec.id.name, self.runtime.instances.get(spec.id.name)
        if instance is None or name in self._unheard:
            return
        if hold.unknown and instance.source is None:
            now = self.runtime.now()
            status = statuses.progressing(instance.status, Stage.FETCHED, hold.reason, hold.message, now)
            self.runtime.set_status(instance, status)
        else:
            self.runtime.block(spec.id, spec.generation, spec.status, hold.reason, hold.message)
