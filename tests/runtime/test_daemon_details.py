"""The snapshots of a daemon are plain values: they are frozen and can be compared."""

from dataclasses import FrozenInstanceError, replace

import pytest

from tests.debug.support.samples import DAEMON, POOLS, STATISTICS
from wharfinger.runtime.daemon_details import LeaderSnapshot


@pytest.mark.parametrize("one", [DAEMON, STATISTICS, POOLS[0], LeaderSnapshot()])
def test_snapshots_of_a_daemon_are_immutable(one: object) -> None:
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        one.name = "x"  # type: ignore[attr-defined]


def test_snapshots_with_equal_fields_are_equal() -> None:
    assert replace(STATISTICS) == STATISTICS
    assert replace(DAEMON, ready=not DAEMON.ready) != DAEMON
