"""The events and effects of sizing are values: they are equal if their fields are, and can be in sets."""

from tests.pools.pods.podstates import pod
from wharfinger.pools.pods.sizing_events import DeletePod, MakePod, PodChecked, RetirePod, RetireSettled


def test_events_are_compared_by_value() -> None:
    assert {MakePod("a"), MakePod("a"), MakePod("b")} == {MakePod("a"), MakePod("b")}
    assert RetirePod(pod("1")) == RetirePod(pod("1")) != RetirePod(pod("1", 2))
    assert len({DeletePod(pod("1")), RetirePod(pod("1"))}) == 2
    assert PodChecked("a", found=True) != PodChecked("a", found=False)
    assert RetireSettled("a", 1) != RetireSettled("a", 2)
