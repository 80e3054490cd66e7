"""Changes of a status as events: stepping one again gives the status that it was made from."""

from tests.runtime.support.statuses import T0, T1, T2, ready
from wharfinger.runtime.recording.reported import Reported, reported, step
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Stage


def again(before: PackageStatus, after: PackageStatus) -> Reported:
    event = reported(before, after)
    assert step(before, event) == after
    assert list(step(before, event).told) == list(after.told)
    return event


def test_external_conditions_are_derived_again() -> None:
    failed = statuses.failed(ready(), Stage.APPLIED, "ApplyFailed", "no", T1, permanent=False)
    event = again(ready(), failed)
    assert set(event.stages) == {Stage.APPLIED}
    assert (event.told, event.derived_at) == (None, T1)


def test_a_change_without_external_conditions_has_no_time() -> None:
    event = again(ready(), statuses.released(ready(), "2.0.0", "sha256:bb", 7))
    assert event == Reported(others={"version": "2.0.0", "digest": "sha256:bb", "revision": 7})


def test_conditions_that_do_not_follow_from_the_rest_are_part_of_the_event() -> None:
    gone = statuses.uninstalled(ready(), T2)
    event = again(ready(), gone)
    assert event.told is not None


def test_a_new_status_replaces_another() -> None:
    again(ready(), statuses.restored(5, statuses.external(ready()), T2))
    again(ready(), statuses.fresh(1, T0))
