"""The scenarios of ``recorder``. The control plane gives the answers that a kube-apiserver gave when they were recorded."""

import pytest

from tests.control_plane.recorded_answers.recorder import RECORDINGS, SCENARIOS
from tests.control_plane.recorded_answers.replay import load_file, replay_offline

NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))


@pytest.mark.measured  # the rules of many API groups have no faster tests
@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", NAMES)
def test_answers_equal_the_recording(name: str) -> None:
    wrong = replay_offline(load_file(RECORDINGS / f"{name}.jsonl"))
    said = (f"step {step.number} ({step.note}):\n  " + "\n  ".join(found) for step, found in wrong)
    assert not wrong, "\n".join(said)


def test_every_scenario_is_recorded() -> None:
    assert sorted(path.stem for path in SCENARIOS.glob("*.yaml")) == NAMES
