"""The events and effects are values: equal if their fields are, and usable in sets."""

from tests.pools.pods.podstates import pod
from wharfinger.pools.pods.sizing_events import Checked, DeletePod, MakePod, RetirePod, Settled


def test_they_are_values() -> None:
    assert {MakePod("a"), MakePod("a"), MakePod("b")} == {MakePod("a"), MakePod("b")}
    assert RetirePod(pod("1")) == RetirePod(pod("1")) != RetirePod(pod("1", 2))
    assert len({DeletePod(pod("1")), RetirePod(pod("1"))}) == 2
    assert Checked("a", found=True) != Checked("a", found=False)
    assert Settled("a", 1) != Settled("a", 2)
