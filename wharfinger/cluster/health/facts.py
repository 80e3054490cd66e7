"""The `Fact` about each live object of a release (mainly its readiness), and the tasks that judge objects whose content does
not show their readiness.

Most objects are judged immediately when they are reported. Two kinds of objects cannot be judged immediately, and are *open*
until a task has judged them:

* objects for which their release has a rule, because a worker process evaluates its expressions
  (:mod:`~wharfinger.cluster.health.rules`);
* custom objects without a status: their CRD, which is read once, shows whether the kind declares a status.

A task that cannot finish, because the worker died or the API server does not answer, retries after :data:`RETRY_S`; until
then the former readiness is kept, and counts as not certain. If an object waits for a task, its newest content is kept until it
was judged.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, ClusterError, NotFoundError
from wharfinger.cluster.health.health import Fact, Sighting, sighting
from wharfinger.cluster.health.rules import Expressions, HealthRule, judged
from wharfinger.cluster.objects.desired import Identity, identity_of
from wharfinger.cluster.watch.readiness import Current, InProgress, Readiness, lacks_status, readiness, unsettled
from wharfinger.formats.errors import ProgramError
from wharfinger.formats.json.value import JsonObject, ShapeError, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.kube.times import parse_time

GRACE_S: Final = 30.0
"""The time after the creation of an object in which the object may lack the status that its kind declares."""
RETRY_S: Final = 5.0
GUARD_S: Final = 30.0
"""The time after an apply in which older states from the watch are ignored. The time is limited, because versions start again
at a lower number if etcd is restored from a backup.
"""
JUDGES: Final = 4
"""The number of objects whose health is judged at the same time."""
CRD: Final = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
_FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True)
class _Case:
    """An object to be judged by a task; if ``obj`` is None, the task reads the object first."""

    key: ObjectKey
    obj: JsonObject | None


class HealthFacts:
    """The facts about live objects, mainly their readiness. ``rule_of`` returns the health rule of an object, or None if the
    built-in rules apply.

    ``changed`` is called with each object whose fact changed.
    """

    def __init__(
        self,
        client: ClusterClient,
        expressions: Expressions | None,
        rule_of: Callable[[Identity], HealthRule | None],
        changed: Callable[[Identity], None],
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._expressions = expressions
        self._rule_of = rule_of
        self._changed = changed
        self._now = now
        self._facts: dict[Identity, Fact] = {}
        self._graces: dict[Identity, float] = {}
        self._cases: dict[Identity, _Case] = {}
        self._later: dict[Identity, tuple[float, _Case]] = {}
        self._work = trio.Event()
        self._declares: dict[ResourceType, bool] = {}

    def get(self, identity: Identity) -> Fact | None:
        """Return the fact about an object; None if the object does not exist, or was not looked up."""
        return self._facts.get(identity)

    def __len__(self) -> int:
        """Return the number of objects about which a fact is known."""
        return len(self._facts)

    @property
    def open(self) -> int:
        """Return the number of objects that wait for a task."""
        return len(self._cases) + len(self._later)

    @property
    def next_grace(self) -> float:
        """Return when the next grace time ends (trio's clock)."""
        return min(self._graces.values(), default=inf)

    def end_graces(self) -> None:
        """Report the objects whose grace time is over."""
        now = trio.current_time()
        for identity in [one for one, until in self._graces.items() if until <= now]:
            del self._graces[identity]
            self._changed(identity)

    # -- notifications

    def saw(self, key: ObjectKey, obj: JsonObject) -> None:
        """Record an object from the watch; ignore it if a recent apply was answered with a newer state."""
        identity, seen = identity_of(key), _sighting(obj)
        held = self._facts.get(identity)
        if held is None or not (seen.is_before(held.seen) and trio.current_time() < held.guarded):
            self._judge_now(identity, _Case(key, obj), seen)

    def answered(self, key: ObjectKey, obj: JsonObject) -> None:
        """Record an object from the answer to an apply; ignore it if the watch has a newer state."""
        identity, seen = identity_of(key), _sighting(obj)
        held = self._facts.get(identity)
        if held is None or not seen.is_before(held.seen):
            self._judge_now(identity, _Case(key, obj), seen)
            self._facts[identity] = replace(self._facts[identity], guarded=trio.current_time() + GUARD_S)

    def lost(self, key: ObjectKey) -> None:
        """Record that an object is gone."""
        self._drop(identity_of(key))

    def _drop(self, identity: Identity) -> None:
        self._cases.pop(identity, None)
        self._later.pop(identity, None)
        self._graces.pop(identity, None)
        if self._facts.pop(identity, None) is not None:
            self._changed(identity)

    def forget(self, group_kind: str) -> None:
        """Discard the facts about a kind that is not watched any more, because they would become outdated."""
        for identity in [one for one in self._facts if one.group_kind == group_kind]:
            self._drop(identity)

    def judge_again(self, key: ObjectKey) -> None:
        """Judge an object again if its rule has changed. Do nothing if nothing is known about the object."""
        identity = identity_of(key)
        held = self._facts.get(identity)
        if held is not None and held.rule != self._rule_of(identity):
            self._put(identity, replace(held, open=True, rule=self._rule_of(identity)))
            self._open(identity, _Case(key, None))

    def _judge_now(self, identity: Identity, case: _Case, seen: Sighting) -> None:
        """Judge the object immediately. If a rule has to be evaluated, or the definition of the object's kind has to be read,
        let a task judge it instead.
        """
        obj, rule, held = case.obj or {}, self._rule_of(identity), self._facts.get(identity)
        if held is not None and held.seen == seen and held.rule == rule and seen.version >= 0:
            return  # this state is known already
        self._cases.pop(identity, None)
        self._later.pop(identity, None)
        waiting = unsettled(obj)
        if waiting is None and (self._needs_rule(rule) or self._needs_definition(case.key.resource, obj)):
            before = held.state if held is not None and held.seen.uid == seen.uid else InProgress("not judged yet")
            self._put(identity, Fact(seen, before, open=True, rule=rule))
            self._open(identity, case)
        else:
            self._put(identity, self._fact(case.key.resource, obj, seen, waiting or readiness(obj), rule))

    def _needs_rule(self, rule: HealthRule | None) -> bool:
        return rule is not None and self._expressions is not None

    def _needs_definition(self, resource: ResourceType, obj: JsonObject) -> bool:
        return lacks_status(obj) and resource not in self._declares

    def _fact(
        self, resource: ResourceType, obj: JsonObject, seen: Sighting, state: Readiness, rule: HealthRule | None
    ) -> Fact:
        if state != Current() or self._needs_rule(rule) or not lacks_status(obj) or not self._declares.get(resource):
            return Fact(seen, state, rule=rule)
        made = parse_time(_str(obj, "creationTimestamp"))
        age = 0.0 if made is None else (self._now() - made).total_seconds()
        until = trio.current_time() + min(max(GRACE_S - age, 0.0), GRACE_S)
        return Fact(seen, InProgress("its controller has not written a status yet"), until=until, rule=rule)

    def _put(self, identity: Identity, fact: Fact) -> None:
        before, now = self._facts.get(identity), trio.current_time()
        self._facts[identity] = fact
        self._graces.pop(identity, None)
        if fact.until is not None and fact.until > now:
            self._graces[identity] = fact.until
        if before is None or (before.at(now), before.open) != (fact.at(now), fact.open):
            self._changed(identity)

    def _open(self, identity: Identity, case: _Case) -> None:
        self._later.pop(identity, None)
        self._cases[identity] = case
        self._work.set()

    # -- tasks

    async def run(self) -> None:
        """Judge the objects that wait for a task, until cancelled."""
        async with trio.open_nursery() as nursery:
            for number in range(JUDGES):
                nursery.start_soon(self._judge_all, name=f"health judge {number}")

    async def _judge_all(self) -> None:
        while True:
            identity, case = await self._next_case()
            try:
                await self._judge(identity, case)
            except (ClusterError, ProgramError):
                if identity not in self._cases and identity in self._facts:
                    self._later[identity] = trio.current_time() + RETRY_S, case
                    self._work.set()

    async def _next_case(self) -> tuple[Identity, _Case]:
        while True:
            now = trio.current_time()
            for identity, (due, case) in tuple(self._later.items()):
                if due <= now:
                    del self._later[identity]
                    self._cases[identity] = case
            if self._cases:
                identity = next(iter(self._cases))
                return identity, self._cases.pop(identity)
            self._work = self._work if not self._work.is_set() else trio.Event()
            with trio.move_on_at(min((due for due, _ in self._later.values()), default=inf)):
                await self._work.wait()

    async def _judge(self, identity: Identity, case: _Case) -> None:
        """Judge whether an object is ready, and record the result. Raises ClusterError and ProgramError if that is not possible
        now.
        """
        obj = case.obj
        if obj is None:
            try:
                obj = await self._client.get(case.key)
            except NotFoundError:
                return  # the watch will report it
        rule, seen = self._rule_of(identity), _sighting(obj)
        if rule is not None and self._expressions is not None:
            state = await judged(rule, obj, self._expressions)
        else:
            if lacks_status(obj) and case.key.resource not in self._declares:
                self._declares[case.key.resource] = await self._declares_status(case.key.resource)
            state = readiness(obj)
        held = self._facts.get(identity)
        if held is None or identity in self._cases or (held.seen != seen and (case.obj is not None or not held.open)):
            return  # it is gone, or a newer state was reported
        if rule != self._rule_of(identity):
            self._open(identity, _Case(case.key, None))
            return
        self._put(identity, replace(self._fact(case.key.resource, obj, seen, state, rule), guarded=held.guarded))

    async def _declares_status(self, resource: ResourceType) -> bool:
        """Return whether the kind's definition has the status subresource; False if there is no definition that we may read."""
        try:
            crd = await self._client.get(ObjectKey(CRD, "", f"{resource.plural}.{resource.group}"))
            versions = [one for one in find_list(crd, "spec", "versions") if find_str(one, "name") == resource.version]
            return any("status" in find_object(one, "subresources") for one in versions)
        except (NotFoundError, ShapeError):
            return False
        except ApiError as error:
            if error.code == _FORBIDDEN:
                return False
            raise


def _sighting(obj: JsonObject) -> Sighting:
    try:
        return sighting(obj)
    except ShapeError:
        return Sighting("", -1)


def _str(obj: JsonObject, name: str) -> str:
    try:
        return find_str(obj, "metadata", name)
    except ShapeError:
        return ""
