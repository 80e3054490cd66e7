"""What annotations say of how a simulated object fares."""

import pytest

from wharfinger.control_plane.controllers.framework.simulation_annotations import Knobs, changed, read_knobs
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        ({}, Knobs()),
        ({"note": "x"}, Knobs()),
        ({"wharfinger.dev/ready-after": "2.5"}, Knobs(ready_after_s=2.5, given=True)),
        ({"wharfinger.dev/observed-after": "1.5"}, Knobs(observed_after_s=1.5, given=True)),
        ({"wharfinger.dev/ready-after": "-1"}, Knobs(given=True)),
        ({"wharfinger.dev/ready-after": "inf"}, Knobs(given=True)),
        ({"wharfinger.dev/ready-after": "soon"}, Knobs(given=True)),
        ({"wharfinger.dev/never-ready": "TRUE"}, Knobs(never_ready=True, given=True)),
        ({"wharfinger.dev/never-ready": "no"}, Knobs(given=True)),
        ({"wharfinger.dev/fail": "true"}, Knobs(exit_code=1, given=True)),
        ({"wharfinger.dev/exit-code": "7", "wharfinger.dev/fail": "true"}, Knobs(exit_code=7, given=True)),
        ({"wharfinger.dev/exit-code": "x"}, Knobs(exit_code=1, given=True)),
        ({"wharfinger.dev/crash-loop": "true"}, Knobs(crash_loop=True, given=True)),
        ({"wharfinger.dev/image-pull-failure": "true"}, Knobs(pull_failure=True, given=True)),
        ({"wharfinger.dev/never-scheduled": "true"}, Knobs(never_scheduled=True, given=True)),
    ],
)
def test_what_is_read(annotations: JsonObject, found: Knobs) -> None:
    assert read_knobs(annotations) == found


def test_what_counts_as_a_change() -> None:
    one: JsonObject = {"metadata": {"annotations": {"wharfinger.dev/fail": "true"}}}
    assert changed(one, {})
    assert not changed(one, {"metadata": {"annotations": {"wharfinger.dev/fail": "true", "note": "x"}}})
