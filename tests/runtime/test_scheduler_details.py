"""The snapshots of nodes and the explanations are plain values: they are frozen and can be compared."""

from dataclasses import FrozenInstanceError, replace

import pytest

from tests.debug.support.samples import NODES, WAITING_NODE, WHY


@pytest.mark.parametrize("one", [NODES[0], WAITING_NODE, WHY, WHY.causes[0]])
def test_snapshots_of_the_scheduler_are_immutable(one: object) -> None:
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        one.name = "x"  # type: ignore[attr-defined]


def test_explanations_with_different_remedies_are_not_equal() -> None:
    assert replace(WHY) == WHY
    assert replace(WHY, remedy="wait") != WHY
