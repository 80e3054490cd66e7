"""Admission of Pods: priorities, tolerations and runtime classes, in cases that no recording of a real API server covers."""

import pytest

from tests.control_plane.support.pod_writes import backend, write
from wharfinger.control_plane.api.core.pods.placement_admission import (
    check_default_class,
    check_overhead,
    give_overhead,
    give_priority,
    give_tolerations,
)
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, find, find_list

EVERYBODY: JsonObject = {"metadata": {"name": "all"}, "value": 7, "globalDefault": True}
HOLDS = ("scheduling.k8s.io", "priorityclasses", EVERYBODY)
EMPTY: JsonObject = {"spec": {}}


def test_the_default_priority_class_is_unique_and_applied() -> None:
    given = give_priority(write(backend(HOLDS), EMPTY), EMPTY)
    assert find(given, "spec", "priority") == 7
    assert find(given, "spec", "priorityClassName") == "all"
    with pytest.raises(StatusError, match="already marked as default"):
        check_default_class(write(backend(HOLDS), EVERYBODY))
    check_default_class(write(backend(), EVERYBODY))
    check_default_class(write(backend(HOLDS), {"value": 1}))


def test_an_update_keeps_the_priority() -> None:
    old: JsonObject = {"spec": {"priority": 5, "preemptionPolicy": "Never"}}
    given = give_priority(write(backend(), EMPTY, old), EMPTY)
    assert find(given, "spec", "priority") == 5


def test_subresources_are_not_changed() -> None:
    admission = write(backend(), EMPTY, EMPTY, below="status")
    for plugin in (give_priority, give_tolerations, give_overhead):
        assert plugin(admission, EMPTY) is EMPTY
    check_overhead(admission)
    assert len(find_list(give_tolerations(write(backend(), EMPTY), EMPTY), "spec", "tolerations")) == 2
