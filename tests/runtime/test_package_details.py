"""The snapshots of details are values: frozen, comparable, and without a place for anything that changes."""

from dataclasses import FrozenInstanceError

import pytest

from tests.debug.support.samples import CLUSTER_EVENTS, DAEMON_TASKS, DIFFERENCE, HOOK_SNAPSHOTS, LOG, RESOURCES


@pytest.mark.parametrize("one", [RESOURCES[0], CLUSTER_EVENTS[0], LOG, DIFFERENCE, HOOK_SNAPSHOTS[0], DAEMON_TASKS[0]])
def test_they_cannot_be_changed(one: object) -> None:
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        one.package = "x"  # type: ignore[attr-defined]
