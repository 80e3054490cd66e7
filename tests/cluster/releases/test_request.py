"""The fingerprints of release requests."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cluster.support.release_requests import CHART, config_map, request
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.request import ReleaseRequest

WANTED = request(config_map("a", v="1"), size=1)


def test_equal_requests_have_equal_fingerprints() -> None:
    assert WANTED.fingerprint == request(config_map("a", v="1"), size=1).fingerprint
    assert WANTED.owner == Owner("web", "default")


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, values={"size": 2}),
        lambda one: replace(one, chart={**CHART, "version": "2"}),
        lambda one: replace(one, manifest=one.manifest + "\n"),
        lambda one: replace(one, objects=()),
        lambda one: replace(one, crds=one.objects),
        lambda one: replace(one, hooks=one.objects),
        lambda one: replace(one, labels={"a": "b"}),
        lambda one: replace(one, marks={"a": "b"}),
        lambda one: replace(one, base=b"a"),
        lambda one: replace(one, notes="hello"),
        lambda one: replace(one, drift=DriftPolicy(DriftMode.WARN)),
        lambda one: replace(one, prune_to_empty=True),
    ],
)
def test_any_changed_input_changes_the_fingerprint(change: Callable[[ReleaseRequest], ReleaseRequest]) -> None:
    assert change(WANTED).fingerprint != WANTED.fingerprint
