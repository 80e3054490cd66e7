from dataclasses import replace

import pytest

from tests.debug.support.samples import BUSY, package
from wharfinger.debug.package.wait_goal import (
    Deleted,
    Goal,
    HasCondition,
    Ready,
    is_reached,
    progress_text,
    read_goal,
    unknown_condition,
)


@pytest.mark.parametrize(
    ("text", "goal", "said"),
    [
        ("ready", Ready(), "ready"),
        ("Deleted", Deleted(), "deleted"),
        ("delete", Deleted(), "deleted"),
        ("condition=Loaded", HasCondition("Loaded", "True"), "condition Loaded is True"),
        ("condition=Ready", Ready(), "ready"),
        ("condition=ready=False", Ready(wanted=False), "not ready"),
        ("condition=Loaded=false", HasCondition("Loaded", "False"), "condition Loaded is False"),
    ],
)
def test_goals_are_parsed_and_printed(text: str, goal: Goal, said: str) -> None:
    assert read_goal(text) == goal
    assert str(goal) == said


@pytest.mark.parametrize("text", ["", "condition=", "condition=X=maybe", "Loaded", "jsonpath={.a}"])
def test_invalid_goals_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected ready"):
        read_goal(text)


def test_a_package_is_never_ready_unknown() -> None:
    with pytest.raises(ValueError, match=r"^Ready can only be True or False, found 'condition=Ready=Unknown'$"):
        read_goal("condition=Ready=Unknown")


def test_a_goal_is_reached_by_state_condition_or_deletion() -> None:
    ready, failed = package(), replace(package(), state="Failed")
    assert [is_reached(Ready(), each) for each in (ready, failed, None)] == [True, False, False]
    assert [is_reached(Ready(wanted=False), each) for each in (ready, failed, None)] == [False, True, False]
    assert [is_reached(Deleted(), each) for each in (ready, None)] == [False, True]
    condition = HasCondition("loaded", "True")
    assert [is_reached(condition, each) for each in (ready, None)] == [True, False]
    assert not is_reached(HasCondition("Loaded", "False"), ready)
    assert not is_reached(HasCondition("Other", "True"), ready)


def test_an_unknown_condition_is_reported_with_the_nearest_name() -> None:
    assert unknown_condition(HasCondition("loaded", "True"), package()) == ""
    assert unknown_condition(HasCondition("Removed", "True"), package()) == "", (
        "a package has this condition only at times"
    )
    assert unknown_condition(Ready(), package()) == unknown_condition(Deleted(), package()) == ""
    assert unknown_condition(HasCondition("Loadde", "True"), package()) == (
        "there is no condition 'Loadde'; did you mean Loaded? known are Loaded, Accepted, Removed and Ready"
    )
    assert unknown_condition(HasCondition("Nonsense", "False"), package()) == (
        "there is no condition 'Nonsense'; known are Loaded, Accepted, Removed and Ready"
    )


def test_progress_is_shown_while_waiting() -> None:
    assert progress_text(None) == "there is no such package yet"
    assert progress_text(replace(package(), message="")) == "Ready"
    assert progress_text(BUSY) == "Ready: waits; 3 done, 1 to go: Deployment prod/busy"
