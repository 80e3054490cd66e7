"""The progress of an owner's rows."""

import pytest

from tests.cluster.reconciler.samples import Row
from wharfinger.cluster.reconciler.records import Owner


def an_owner(waiting: int = 0, failing: int = 0, refreshing: int = 0, hopeless: int = 0) -> Owner[int, Row]:
    owner: Owner[int, Row] = Owner("a")
    for lowest, revision in (
        (owner.waiting, waiting),
        (owner.failing, failing),
        (owner.refreshing, refreshing),
        (owner.hopeless, hopeless),
    ):
        if revision:
            lowest.add(revision, revision)
    return owner


@pytest.mark.parametrize(
    ("owner", "attempted", "settled"),
    [
        (an_owner(), 10, True),
        (an_owner(waiting=5), 4, False),
        (an_owner(waiting=8), 7, True),
        (an_owner(failing=7), 10, False),
        (an_owner(failing=8), 10, True),
        (an_owner(refreshing=7), 10, False),
        (an_owner(refreshing=8), 10, True),
        (an_owner(failing=7, hopeless=7), 10, True),
        (an_owner(failing=7, hopeless=8), 10, False),
        (an_owner(waiting=2, hopeless=7), 1, True),
    ],
)
def test_attempted_and_settled_revisions_are_reported(owner: Owner[int, Row], attempted: int, settled: bool) -> None:
    assert (owner.attempted(10), owner.settled(10, 7)) == (attempted, settled)


def test_open_keys_are_sorted_and_forgotten_by_revision() -> None:
    owner = an_owner(waiting=5, failing=3, refreshing=4, hopeless=3)
    owner.waiting.add(2, 2)
    assert owner.open_keys() == (2, 5, 3, 4)
    for revision in (2, 3, 4, 5):
        owner.forget(revision)
    assert owner.open_keys() == ()
    assert not len(owner.hopeless)
