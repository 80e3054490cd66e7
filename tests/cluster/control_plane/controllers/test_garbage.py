"""Which dependents go, which are set free, and which owners wait."""

from typing import Final

import pytest

from wharfinger.cluster.client import Propagation
from wharfinger.cluster.control_plane.controllers.garbage import (
    FOREGROUND,
    ORPHAN,
    Owners,
    owner_uids,
    reconcile_dependent,
    reconcile_owner,
    waits_for_dependents,
)
from wharfinger.cluster.control_plane.controllers.writes import NOTHING, Delete, Patch, Plan
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue

CONFIG_MAPS: Final = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
KEY: Final = ObjectKey(CONFIG_MAPS, "n", "x")
OTHER: Final = ObjectKey(CONFIG_MAPS, "n", "y")


def made(
    *owners: str, finalizers: list[JsonValue] | None = None, deleted: bool = False, blocks: bool = False
) -> JsonObject:
    references: list[JsonValue] = [{"uid": uid, "blockOwnerDeletion": blocks} for uid in owners]
    metadata: JsonObject = {"name": "x", "uid": "own", "resourceVersion": "7", "ownerReferences": references}
    metadata["finalizers"] = finalizers or []
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata}


def owners(*, solid: str = "", waiting: str = "", gone: str = "") -> Owners:
    return Owners(frozenset(solid), frozenset(waiting), frozenset(gone))


@pytest.mark.parametrize(
    ("obj", "found", "has_dependents", "plan"),
    [
        (made("a"), owners(solid="a"), False, NOTHING),
        (made("a", deleted=True), owners(gone="a"), False, NOTHING),
        (made("a"), owners(gone="a"), False, Plan((Delete(KEY, "own", Propagation.BACKGROUND),))),
        (made("a"), owners(waiting="a"), False, Plan((Delete(KEY, "own", Propagation.BACKGROUND),))),
        (made("a"), owners(waiting="a"), True, Plan((Delete(KEY, "own", Propagation.FOREGROUND),))),
        (
            made("a", finalizers=[FOREGROUND]),
            owners(gone="a"),
            False,
            Plan((Delete(KEY, "own", Propagation.FOREGROUND),)),
        ),
        (made("a", finalizers=[ORPHAN]), owners(gone="a"), False, Plan((Delete(KEY, "own", Propagation.ORPHAN),))),
        (
            made("a", "b", "c"),
            owners(solid="b", gone="a", waiting="c"),
            False,
            Plan(
                (
                    Patch(
                        KEY,
                        {
                            "metadata": {
                                "ownerReferences": [{"uid": "b", "blockOwnerDeletion": False}],
                                "resourceVersion": "7",
                            }
                        },
                    ),
                )
            ),
        ),
    ],
)
def test_dependents(obj: JsonObject, found: Owners, plan: Plan, *, has_dependents: bool) -> None:
    assert reconcile_dependent(KEY, obj, found, has_dependents=has_dependents) == plan


def test_orphaning() -> None:
    owner = made(finalizers=[ORPHAN, "keep"], deleted=True)
    freed = Patch(OTHER, {"metadata": {"ownerReferences": None, "resourceVersion": "7"}})
    released = Patch(KEY, {"metadata": {"finalizers": ["keep"], "resourceVersion": "7"}})
    assert reconcile_owner(KEY, owner, [(OTHER, made("own"))]) == Plan((freed, released))
    assert reconcile_owner(KEY, owner, []) == Plan((released,))


def test_the_foreground_waits_for_those_that_block() -> None:
    owner = made(finalizers=[FOREGROUND], deleted=True)
    released = Patch(KEY, {"metadata": {"finalizers": None, "resourceVersion": "7"}})
    assert waits_for_dependents(owner)
    assert reconcile_owner(KEY, owner, [(OTHER, made("own", blocks=True))]) == NOTHING
    assert reconcile_owner(KEY, owner, [(OTHER, made("own"))]) == Plan((released,))


def test_owners_that_nobody_deletes_stay() -> None:
    assert reconcile_owner(KEY, made(finalizers=[ORPHAN]), []) == NOTHING
    assert reconcile_owner(KEY, made(finalizers=["other"], deleted=True), []) == NOTHING
    assert not waits_for_dependents(made(finalizers=[FOREGROUND]))
    assert owner_uids(made("a", "b")) == ("a", "b")
