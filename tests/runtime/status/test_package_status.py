"""The status of a package: its phase, and the first condition that is not met."""

import pytest
from msgspec.structs import replace

from tests.runtime.support.statuses import T0, T1, before, ready
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Phase, Stage, Truth, first_open, is_gated, open_condition
from wharfinger.runtime.status.reasons import Reason


@pytest.mark.parametrize(
    ("installed", "wanted", "version", "phase"),
    [
        (False, "", "", Phase.INSTALL),
        (False, "2.0.0", "1.0.0", Phase.INSTALL),
        (True, "", "1.0.0", Phase.RECONCILE),
        (True, "1.0.0", "1.0.0", Phase.RECONCILE),
        (True, "2.0.0", "1.0.0", Phase.UPDATE),
    ],
)
def test_the_phase_follows_from_installation_and_version(
    installed: bool, wanted: str, version: str, phase: Phase
) -> None:
    status = replace(ready(), installed_since=T0 if installed else None, wanted=wanted, version=version)
    assert status.phase is phase


@pytest.mark.parametrize("stage", list(Stage)[:-1])
def test_the_first_open_condition_is_the_first_open_stage(stage: Stage) -> None:
    status = statuses.progressing(before(stage, Phase.INSTALL), stage, Reason.PENDING, "", T1)
    status = statuses.failed(status, Stage.SCALED, Reason.WORKLOAD_FAILED, "later", T1, permanent=False)
    found = first_open(status)
    assert found is not None
    assert (found[0], found[1].message) == (stage, f"waiting for {stage.value}")


def test_a_running_package_is_open_until_its_objects_are_checked() -> None:
    assert first_open(ready()) is None
    assert open_condition(ready()) is None
    condition = open_condition(replace(ready(), scale_checked=False))
    assert condition is not None
    assert (condition.truth, condition.message) == (Truth.UNKNOWN, "checking the applied objects")


def test_a_package_is_gated_if_a_requirement_is_its_first_open_stage() -> None:
    unmet = statuses.required(ready(), Reason.DEPENDENCY_NOT_ENABLED, "", T1, met=False)
    assert is_gated(unmet)
    condition = open_condition(unmet)
    assert condition is not None
    assert condition.message == Reason.DEPENDENCY_NOT_ENABLED.text
    assert not is_gated(ready())
    # A package that is not fetched yet is not gated, whatever was decided about its earlier version.
    assert not is_gated(statuses.failed(unmet, Stage.FETCHED, Reason.STORE_FAILED, "full", T1, permanent=False))
    assert not is_gated(statuses.progressing(ready(), Stage.REQUIREMENTS, Reason.PENDING, "", T1))
