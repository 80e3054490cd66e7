"""Nobody breaks what others need unasked: removals, disables and other versions that are held, and what lets them go on.

A package is about to go (its object is deleted, or a Module says ``enabled: false``), or to become another version. Whoever is on
now and would be off for a requirement then (mandatory, another version, the last member of an any-of group, a none-of range that
it falls into) *stands in the way*, and the change is **held**: nothing of it is begun or adopted, what is installed runs on. The
scheduler answers who that is by trying it out (`Scheduler.would_break`); packages that are off do not count, suspended ones do.

=====================================  ======================  ==================================================================
what stands in the way                 reason                  ends when
=====================================  ======================  ==================================================================
a package that stays                   WouldBreakDependents    it goes, or comes to terms, or a person says it does not matter
one that goes itself, now or later     WaitingForDependents    it is gone: so all that goes at once goes in reverse order
packages not loaded since the start    WaitingForDependents    each was loaded, or has failed once
=====================================  ======================  ==================================================================

**It ends.** A removal that has begun waits for nobody, and is known by what it still needs until it is complete. Between those
that are held an edge "waits for" is kept only if it closes no circle, so one of them always may go, unless a package that stays
is in the way. Two members of one any-of group: the first may go, and is gone from then on when the second is judged. A package
that cannot be loaded (its registry is down, its files are lost) holds nobody after its first failure, and protects nobody: what
it required is not known. What had begun before a restart goes on; what was held then is known by what is on the disk
(:mod:`wharfinger.runtime.stock`).

**Nobody polls.** A hold remembers how those it depends on stood. Whatever changes a package makes the controller look at it, and
a look that finds it standing otherwise asks for a look at what it held. LOOK_S is a net below that.

What another version itself requires is known only when it is fetched: if it may not be on, it is paused like anything else, and
nothing is deleted. A version that is none (``latest``) cannot be compared, and passes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, find, find_list, find_str
from wharfinger.formats.version_constraint import parse_version
from wharfinger.runtime import status as statuses
from wharfinger.runtime.identity import PackageId
from wharfinger.runtime.journal import Operation
from wharfinger.runtime.reasons import HELD, Reason
from wharfinger.runtime.resources import (
    FINALIZER,
    PackageSpec,
    SpecError,
    finalizers_of,
    ignores_dependents,
    is_deleting,
)
from wharfinger.runtime.runtime import Runtime
from wharfinger.runtime.scheduler import Broken, Decided, Node
from wharfinger.runtime.status import Stage, Truth
from wharfinger.runtime.stock import rest_as_installed, take_stock

LOOK_S: Final = 60.0
"""How often what is held is looked at, whatever happens or does not."""
MOST_NAMED: Final = 5
_REMOVAL: Final = "the removal"
_DISABLE: Final = "spec.enabled: false"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a package stands, as far as others may be held for it."""

    node: Node | None
    decision: Decided | None
    going: bool
    """Its removal, or its Disable, is under way."""
    asked: bool
    """It is to go."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing is begun now. ``waits`` are those that go first; ``seen`` is how those stood whose change may end it."""

    reason: Reason
    message: str
    waits: frozenset[str] = frozenset()
    seen: Mapping[str, Standing] = field(default_factory=dict)
    unknown: bool = False
    """It is not known yet who stands in the way."""


def judge(what: str, broken: Iterable[Broken], waits: Collection[str], direct: Collection[str] = ()) -> Hold | None:
    """Whether ``what`` (``the removal``) is held: ``broken`` are packages that stay, ``waits`` those that go first.

    What one of them lacks is told, by preference one that breaks for no other: ``direct``.
    """
    staying = sorted(broken, key=lambda each: (each.name not in direct, each.name))
    if staying:
        first = staying[0]
        names = listed(each.name for each in staying)
        message = f"{what} would break {names} ({first.name}: {first.message})"
        return Hold(Reason.WOULD_BREAK_DEPENDENTS, message, frozenset(waits))
    if waits:
        message = f"{what} waits for {listed(waits)}, which {'goes' if len(waits) == 1 else 'go'} first"
        return Hold(Reason.WAITING_FOR_DEPENDENTS, message, frozenset(waits))
    return None


def judge_unknown(what: str, unknown: Collection[str]) -> Hold:
    """``what`` is held because nobody knows yet what ``unknown`` require."""
    message = f"{what} waits until it is known what others need: {listed(unknown)} not loaded yet"
    return Hold(Reason.WAITING_FOR_DEPENDENTS, message, unknown=True)


def needs(node: Node | None) -> frozenset[str]:
    """Whom a package builds on: what it requires, also if only where it is there, and members of its any-of groups."""
    if node is None:
        return frozenset()
    wanted = node.requirements
    members = (each.name for group in wanted.any_of for each in group.members)
    return frozenset((*(each.name for each in (*wanted.mandatory, *wanted.conditional)), *members)) - {node.name}


def reaches(waits: Mapping[str, Collection[str]], start: str, end: str) -> bool:
    """Whether ``start`` waits for ``end``, at any remove."""
    seen, to_see = {start}, [start]
    while to_see:
        name = to_see.pop()
        if name == end:
            return True
        new = [each for each in waits.get(name, ()) if each not in seen]
        seen.update(new)
        to_see += new
    return False


def listed(names: Iterable[str]) -> str:
    """Names, sorted, as a message has them: of many the first five."""
    every = sorted(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def is_version(text: str) -> bool:
    """Whether it can be compared with what others ask for."""
    try:
        parse_version(text)
    except FormatError:
        return False
    return True


def is_ignoring(obj: JsonObject) -> bool:
    """Whether a person wants it done, whoever breaks; not where the annotation says what it must not."""
    try:
        return ignores_dependents(obj)
    except SpecError:
        return False


def is_installed(obj: JsonObject) -> bool:
    """Whether something of it was in the cluster when its status was last written."""
    return bool(find_str(obj, "status", "currentVersion", "version"))


def was_being_removed(obj: JsonObject) -> bool:
    """Whether a removal of it had begun, as its status says."""
    ready = (each for each in find_list(obj, "status", "conditions") if find(each, "type") == "Ready")
    held = any(find(each, "reason") in HELD for each in ready)
    return find_str(obj, "status", "summary", "state") == "Removing" and not held


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
        off = find(obj, "spec", "enabled") is False
        same = version == find_str(obj, "status", "currentVersion", "version") and not off
        suspended = find(obj, "spec", "suspend") is True and not off
        if same or not self._is_new(name) or suspended or is_ignoring(obj):
            return
        stock = await take_stock(self.runtime, identity, obj)
        under_way = name in self._begun_before if off else stock is not None and stock.state.version == version
        if stock is not None and not under_way:
            rest_as_installed(self.runtime, identity, obj, stock)
            self._hear((name,))

    def admit(self, spec: PackageSpec) -> Hold | None:
        """Why what a resource asks for is not adopted; None: it may be."""
        name = spec.id.name
        self._begun_before.discard(name)
        hold = None if spec.directives.ignore_dependents else self._change(spec)
        self._note(name, hold)
        if hold is None and spec.enabled is False:
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
        if spec.enabled is False and on and name not in self._off:
            return self._stopping(name, _DISABLE)
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
        hold = judge(what, [each for each in broken if each.name not in going], self._free(going, name), direct)
        if hold is None:
            return None
        around = {each for node in broken_nodes.values() if node is not None for each in node.names()}
        watched = (hold.waits | broken_nodes.keys() | around) - {name}
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
        off = find(obj, "spec", "enabled") is False and self.runtime.scheduler.enabled(name)
        return obj is not None and (is_deleting(obj) or off)

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
