"""The snapshots of a daemon are values: frozen and comparable."""

from dataclasses import FrozenInstanceError, replace

import pytest

from tests.debug.support.samples import DAEMON, POOLS, STATISTICS
from wharfinger.runtime.daemon_details import LeaderSnapshot


@pytest.mark.parametrize("one", [DAEMON, STATISTICS, POOLS[0], LeaderSnapshot()])
def test_they_cannot_be_changed(one: object) -> None:
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        one.name = "x"  # type: ignore[attr-defined]


def test_equal_counts_are_equal_snapshots() -> None:
    assert replace(STATISTICS) == STATISTICS
    assert replace(DAEMON, ready=not DAEMON.ready) != DAEMON
