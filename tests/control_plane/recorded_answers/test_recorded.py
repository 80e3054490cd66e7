"""Recordings of a kube-apiserver. The control plane gives the same answers, except for known differences."""

import pytest

from tests.control_plane.recorded_answers.replay import RECORDED, load, replay_offline

SCENARIOS = sorted(path.stem for path in RECORDED.glob("*.jsonl"))
WITHOUT_CONTROLLERS = ("22-watch-configmap", "24-watch-bookmarks-configmap")
"""Scenarios that are replayed without controllers, so that there are no other writes."""

KNOWN_TO_DIFFER: dict[tuple[str, int], str] = {
    ("20-paging-configmaps", 19): "the recorded cluster creates another ConfigMap in every namespace",
    (
        "24-watch-bookmarks-configmap",
        14,
    ): "one additional bookmark: the timer of the recorded server did not fire in this second",
    ("36-immutable-b", 12): "the request names an address that no earlier answer contained",
    ("38-configmap-rules", 5): "errors of two keys come in the random order of a Go map",
    (
        "56-auth-configmaps",
        19,
    ): "the recorded cluster has an additional role for /.well-known, and lists rules in random order",
}
"""(scenario, step) → reason. If a step does not differ any more, the test fails until its entry is removed."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_equal_the_recorded_scenario(scenario: str) -> None:
    found = replay_offline(load(scenario), simulate=scenario not in WITHOUT_CONTROLLERS)
    differ = {(scenario, step.number): differences for step, differences in found}
    unknown = {place: differences for place, differences in differ.items() if place not in KNOWN_TO_DIFFER}
    assert not unknown, unknown
    assert {place for place in KNOWN_TO_DIFFER if place[0] == scenario} == set(differ)


def test_every_known_difference_has_a_recorded_step() -> None:
    steps = {(scenario, step.number) for scenario in SCENARIOS for step in load(scenario)}
    assert set(KNOWN_TO_DIFFER) - steps == set()
