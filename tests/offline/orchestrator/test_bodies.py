"""Bodies, the functions that the fixpoint engine runs for nodes. They turn results of controllers into outcomes of the engine,
and publish nothing before they are done.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.offline.support import flux_id
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.controller import NodeResult
from wharfinger.offline.controllers.gate import BlockedError, DependencyFailedError, Gate, MissingError, ReconcileError
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.orchestrator.bodies import TreeBodies, has_nul
from wharfinger.offline.store.kinds import KUSTOMIZATION
from wharfinger.offline.store.status import State
from wharfinger.offline.store.store import ObjectStore, Place, Stored
from wharfinger.runtime.fixpoint.converge import World
from wharfinger.runtime.fixpoint.model import Blocked, DependencyFailed, Id, Level, Terminal

ME, OTHER = flux_id("Kustomization", "me"), flux_id("Kustomization", "other")
MAP = Id("ConfigMap", "default", "x")


class Answering:
    """A controller that gives a preset answer."""

    def __init__(self, answer: Callable[[], NodeResult]) -> None:
        self.answer = answer

    async def reconcile(self, _stored: Stored, _gate: Gate) -> NodeResult:
        return self.answer()


def raising(error: Exception) -> Callable[[], NodeResult]:
    def answer() -> NodeResult:
        raise error

    return answer


def made(*names: str) -> NodeResult:
    objects: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names
    ]
    return NodeResult(tuple(objects), revision="1")


def bodies(controller: Answering) -> tuple[TreeBodies, ObjectStore]:
    store = ObjectStore()
    store.add(ME, {"kind": "Kustomization"})
    tree = Tree(Path(), (".",), (), (), {}, (), (), frozenset())
    return TreeBodies(tree, store, {KUSTOMIZATION: controller}, World()), store


async def test_a_blocked_node_stores_no_status() -> None:
    run, store = bodies(Answering(raising(BlockedError((OTHER,)))))
    assert await run.run(ME, Level.NONE, ()) == Blocked((OTHER,))
    assert store.status(ME).state is State.PENDING


async def test_primary_and_derived_failures_are_distinguished() -> None:
    controller = Answering(raising(ReconcileError("wrong", Place("a.yaml", 3))))
    run, store = bodies(controller)
    assert await run.run(ME, Level.NONE, ()) == Terminal("failed: wrong")
    assert str(run.places[ME]) == "a.yaml:3"
    controller.answer = raising(DependencyFailedError((OTHER,)))
    outcome = await run.run(ME, Level.NONE, ())
    assert isinstance(outcome, DependencyFailed)
    assert (outcome.failed, store.status(ME).blockers) == ((OTHER,), (OTHER,))
    assert ME not in run.places
    controller.answer = raising(MissingError("not there", (OTHER,)))
    outcome = await run.run(ME, Level.CASCADE, ())
    assert isinstance(outcome, DependencyFailed)
    assert store.status(ME).state is State.FAILED


async def test_every_member_of_a_cycle_reports_it() -> None:
    run, store = bodies(Answering(raising(DependencyFailedError((OTHER,)))))
    await run.run(OTHER, Level.FORCE, (OTHER, ME))  # The node is no longer in the store, but its run names the cycle.
    store.add(OTHER, {"kind": "Kustomization"})
    await run.run(OTHER, Level.FORCE, (OTHER, ME))
    await run.run(ME, Level.NONE, ())
    assert store.status(ME).message == (
        "dependency cycle: Kustomization flux-system/me → Kustomization flux-system/other → Kustomization flux-system/me"
    )


async def test_new_objects_are_emitted_and_dropped_objects_are_removed() -> None:
    controller = Answering(lambda: made("x", "y"))
    run, store = bodies(controller)
    outcome = await run.run(ME, Level.NONE, ())
    assert isinstance(outcome, Terminal)
    assert [(each.id.name, each.runnable) for each in outcome.emissions] == [("x", False), ("y", False)]
    controller.answer = lambda: made("x")
    await run.run(ME, Level.NONE, ())
    assert [each.id for each in store.list("ConfigMap")] == [MAP]
    controller.answer = raising(ReconcileError("wrong"))
    await run.run(ME, Level.NONE, ())
    assert store.list("ConfigMap") == ()


async def test_an_object_of_an_earlier_producer_is_not_replaced() -> None:
    run, store = bodies(Answering(lambda: made("x")))
    store.add(MAP, {"kind": "ConfigMap", "data": {}}, producer=flux_id("Kustomization", "first"))
    outcome = await run.run(ME, Level.NONE, ())
    assert isinstance(outcome, Terminal)
    assert outcome.emissions == ()
    store.add(MAP, {"kind": "ConfigMap", "data": {}}, producer=OTHER)
    outcome = await run.run(ME, Level.NONE, ())
    assert isinstance(outcome, Terminal)
    assert [each.id for each in outcome.emissions] == [MAP]


async def test_a_document_that_is_not_an_object_fails_its_producer() -> None:
    run, store = bodies(Answering(lambda: NodeResult(({"a": 1},))))
    await run.run(ME, Level.NONE, ())
    assert store.status(ME).message == "it renders a document that lacks apiVersion or kind"


async def test_missing_nodes_are_ignored_and_skipped_nodes_get_a_status() -> None:
    run, store = bodies(Answering(lambda: NodeResult(skipped="suspended")))
    assert await run.run(OTHER, Level.NONE, ()) == Terminal("gone")
    await run.run(ME, Level.NONE, ())
    assert store.status(ME).state is State.SKIPPED
    assert not run.reruns_at_drain(ME)


async def test_a_name_that_no_server_accepts_fails_its_producer() -> None:
    wrong: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "../x"}}
    run, store = bodies(Answering(lambda: NodeResult((wrong,))))
    await run.run(ME, Level.NONE, ())
    assert "metadata.name: '../x' cannot be a name" in store.status(ME).message


async def test_a_system_error_fails_the_node_and_names_the_path() -> None:
    run, store = bodies(Answering(raising(OSError(36, "File name too long", "a" * 5000))))
    await run.run(ME, Level.NONE, ())
    assert store.status(ME).message == f"{'a' * 199}…: cannot be read: File name too long"


@pytest.mark.parametrize("obj", [{"spec": {"path": "a\0b"}}, {"spec": [{"a\0": 1}]}])
async def test_an_object_with_a_nul_character_is_not_built(obj: JsonObject) -> None:
    run, store = bodies(Answering(lambda: made("x")))
    store.add(ME, obj)
    await run.run(ME, Level.NONE, ())
    assert "a text has a NUL character" in store.status(ME).message


def test_an_escaped_backslash_before_u0000_is_not_a_nul_character() -> None:
    assert not has_nul({"pattern": "[^\\u0000]"})
    assert has_nul({"pattern": "[^\\u0000]", "list": [{"a": "\0"}]})
