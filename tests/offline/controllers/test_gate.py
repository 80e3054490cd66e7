"""The gate, which checks before a controller's work whether all needed objects are ready: its result for absent, pending and
failed objects at each level that the fixpoint engine sets (spec/schedulers §A.2).
"""

from pathlib import Path

import pytest

from tests.offline.support import flux_id
from wharfinger.offline.controllers.gate import (
    BlockedError,
    DependencyFailedError,
    Gate,
    MissingError,
    Need,
    ReconcileError,
)
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.store.status import READY, State, Status
from wharfinger.offline.store.store import ObjectStore
from wharfinger.runtime.fixpoint.model import Id, Level

ME, OTHER = flux_id("Kustomization", "me"), flux_id("Kustomization", "other")
DATA = Id("ConfigMap", "a", "data")


def gate(level: Level, store: ObjectStore, loop: tuple[Id, ...] = ()) -> Gate:
    tree = Tree(Path(), (".",), (), (), {}, (), (), frozenset())
    return Gate(ME, level, loop, store, tree)


def store(status: Status | None = None) -> ObjectStore:
    made = ObjectStore()
    if status is not None:
        made.add(OTHER, {"kind": "Kustomization"})
        made.set_status(OTHER, status)
    return made


FAILED = Status(State.FAILED, "x")


@pytest.mark.parametrize(
    ("status", "level", "error"),
    [
        (None, Level.NONE, BlockedError),
        (None, Level.CASCADE, MissingError),
        (None, Level.FORCE, MissingError),
        (Status(State.PENDING), Level.NONE, BlockedError),
        (Status(State.PENDING), Level.CASCADE, BlockedError),
        (Status(State.PENDING), Level.FORCE, ReconcileError),
        (FAILED, Level.NONE, DependencyFailedError),
        (FAILED, Level.CASCADE, DependencyFailedError),
        (FAILED, Level.FORCE, DependencyFailedError),
    ],
)
def test_unmet_dependencies_block_or_fail_by_level(status: Status | None, level: Level, error: type[Exception]) -> None:
    with pytest.raises(error):
        gate(level, store(status)).require([Need(OTHER, "spec.dependsOn[0]")])


@pytest.mark.parametrize("status", [READY, Status(State.SKIPPED, "suspended")])
def test_a_ready_dependency_is_accepted_and_recorded(status: Status) -> None:
    opened = gate(Level.NONE, store(status))
    opened.require([Need(OTHER, "spec.dependsOn[0]")])
    assert opened.reads == {OTHER}


def test_data_objects_only_have_to_exist() -> None:
    made = store()
    made.add(DATA, {"kind": "ConfigMap"})
    gate(Level.NONE, made).require([Need(DATA, "x")])


def test_a_missing_dependency_blocks_even_if_another_one_failed() -> None:
    with pytest.raises(BlockedError) as error:
        gate(Level.NONE, store(FAILED)).require([Need(OTHER, "x"), Need(DATA, "y")])
    assert error.value.lacks == (DATA,)


def test_a_cycle_is_reported_as_a_path() -> None:
    made = store(Status(State.PENDING))
    with pytest.raises(
        ReconcileError, match="dependency cycle: Kustomization flux-system/me → Kustomization flux-system/other → K"
    ):
        gate(Level.FORCE, made, (ME, OTHER)).require([Need(OTHER, "x")])
    with pytest.raises(ReconcileError, match="never becomes ready"):
        gate(Level.FORCE, made).require([Need(OTHER, "x")])


def test_a_node_that_depends_on_itself_fails() -> None:
    with pytest.raises(ReconcileError, match="names Kustomization flux-system/me itself"):
        gate(Level.NONE, store()).require([Need(ME, "x")])


def test_the_message_for_a_missing_secret_names_the_option() -> None:
    with pytest.raises(MissingError) as error:
        gate(Level.CASCADE, store()).require([Need(Id("Secret", "apps", "login"), "spec.secretRef")])
    assert str(error.value) == (
        "spec.secretRef: Secret apps/login does not exist, and no ExternalSecret makes it; "
        "if only the cluster has it, use --allow-missing-secrets"
    )
