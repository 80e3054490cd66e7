"""The annotations that change how controllers simulate an object."""

import pytest

from wharfinger.control_plane.controllers.framework.simulation_annotations import (
    SimulationOptions,
    changed,
    read_options,
)
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        ({}, SimulationOptions()),
        ({"note": "x"}, SimulationOptions()),
        ({"wharfinger.dev/ready-after": "2.5"}, SimulationOptions(ready_after_s=2.5, given=True)),
        ({"wharfinger.dev/observed-after": "1.5"}, SimulationOptions(observed_after_s=1.5, given=True)),
        ({"wharfinger.dev/ready-after": "-1"}, SimulationOptions(given=True)),
        ({"wharfinger.dev/ready-after": "inf"}, SimulationOptions(given=True)),
        ({"wharfinger.dev/ready-after": "soon"}, SimulationOptions(given=True)),
        ({"wharfinger.dev/never-ready": "TRUE"}, SimulationOptions(never_ready=True, given=True)),
        ({"wharfinger.dev/never-ready": "no"}, SimulationOptions(given=True)),
        ({"wharfinger.dev/fail": "true"}, SimulationOptions(exit_code=1, given=True)),
        ({"wharfinger.dev/exit-code": "7", "wharfinger.dev/fail": "true"}, SimulationOptions(exit_code=7, given=True)),
        ({"wharfinger.dev/exit-code": "x"}, SimulationOptions(exit_code=1, given=True)),
        ({"wharfinger.dev/crash-loop": "true"}, SimulationOptions(crash_loop=True, given=True)),
        ({"wharfinger.dev/image-pull-failure": "true"}, SimulationOptions(pull_failure=True, given=True)),
        ({"wharfinger.dev/never-scheduled": "true"}, SimulationOptions(never_scheduled=True, given=True)),
    ],
)
def test_simulation_annotations_are_read(annotations: JsonObject, found: SimulationOptions) -> None:
    assert read_options(annotations) == found


def test_changes_of_other_annotations_are_ignored() -> None:
    one: JsonObject = {"metadata": {"annotations": {"wharfinger.dev/fail": "true"}}}
    assert changed(one, {})
    assert not changed(one, {"metadata": {"annotations": {"wharfinger.dev/fail": "true", "note": "x"}}})
