import pytest

from wharfinger.control_plane.faults.rule import Call, Partition, Selection

CALL = Call("list", "deployments.apps", "Deployment", "default", "web", "wharfinger/0.1")


@pytest.mark.parametrize(
    ("selection", "fits"),
    [
        (Selection(), True),
        (Selection(verbs=frozenset({"list"})), True),
        (Selection(verbs=frozenset({"get"})), False),
        (Selection(kind="deployments.apps"), True),
        (Selection(kind="Deployment"), True),
        (Selection(kind="*.apps"), True),
        (Selection(kind="deployments"), False),
        (Selection(namespace="def*"), True),
        (Selection(name="api"), False),
        (Selection(agent="wharfinger*"), True),
        (Selection(agent="kubectl*"), False),
    ],
)
def test_a_selection_matches_requests(selection: Selection, fits: bool) -> None:
    assert selection.fits(CALL) is fits


def test_a_partition_is_active_between_its_start_and_end() -> None:
    once, again = Partition(5, 2, 0), Partition(5, 2, 10)

    assert [once.until(now) for now in (0, 4.9, 5, 6.9, 7, 16)] == [None, None, 7, 7, None, None]
    assert [again.until(now) for now in (5, 8, 15, 16.5, 17)] == [7, None, 17, 17, None]
    assert (once.next(0), once.next(6), again.next(6), again.next(15)) == (5, None, 15, 25)
