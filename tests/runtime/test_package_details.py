"""The snapshots of package details are plain values: they are frozen, can be compared, and have no mutable fields."""

from dataclasses import FrozenInstanceError

import pytest

from tests.debug.support.samples import CLUSTER_EVENTS, DAEMON_TASKS, DIFFERENCE, HOOK_SNAPSHOTS, LOG, RESOURCES


@pytest.mark.parametrize("one", [RESOURCES[0], CLUSTER_EVENTS[0], LOG, DIFFERENCE, HOOK_SNAPSHOTS[0], DAEMON_TASKS[0]])
def test_snapshots_of_packages_are_immutable(one: object) -> None:
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        one.package = "x"  # type: ignore[attr-defined]
