"""Evictions and bindings of Pods, in cases that no recording of a real API server covers."""

import pytest

from tests.control_plane.support.pod_writes import backend
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.special_endpoints.endpoint import EndpointRequest
from wharfinger.control_plane.special_endpoints.pod_evictions import bind, evict
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

READY: JsonObject = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def pod(**state: JsonValue) -> JsonObject:
    return {"metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}}, "spec": {}, "status": {**READY, **state}}


def cluster(pod_: JsonObject, generation: int = 1, **state: JsonValue) -> Backend:
    budget: JsonObject = {
        "metadata": {"name": "b", "namespace": "n", "generation": generation},
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
        "status": {"observedGeneration": 1, **state},
    }
    return backend(("", "pods", pod_), ("policy", "poddisruptionbudgets", budget))


def asked(view: Backend, body: JsonObject | None = None) -> EndpointRequest:
    options = WriteOptions("m")
    sent = body or {"metadata": {"name": "p"}}
    return EndpointRequest(view, builtin("", "v1", "pods"), "n", "p", "eviction", "POST", sent, options, {})


def test_evictions_count_against_the_budget() -> None:
    view = cluster(pod(), disruptionsAllowed=1)
    assert find(evict(asked(view)), "status") == "Success"
    left = view.object("policy", "poddisruptionbudgets", "n", "b")
    assert find(left, "status", "disruptionsAllowed") == 0
    assert find(left, "status", "conditions", 0, "reason") == "InsufficientPods"
    assert view.object("", "pods", "n", "p") is None


def test_the_budget_does_not_protect_unready_pods() -> None:
    view = cluster(pod(conditions=[]), currentHealthy=1, desiredHealthy=1)
    assert find(evict(asked(view)), "status") == "Success"


@pytest.mark.parametrize(
    ("generation", "state", "code"),
    [
        (2, {}, 429),
        (1, {"disruptionsAllowed": -1}, 403),
        (1, {"currentHealthy": 3, "desiredHealthy": 1}, 429),
        (
            1,
            {"conditions": [{"type": "DisruptionAllowed", "status": "False", "message": "m", "reason": "SyncFailed"}]},
            429,
        ),
        (
            1,
            {
                "currentHealthy": 3,
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "message": "m", "reason": "R"}],
            },
            429,
        ),
    ],
)
def test_disallowed_evictions_are_refused(generation: int, state: JsonObject, code: int) -> None:
    with pytest.raises(StatusError) as caught:
        evict(asked(cluster(pod(), generation, **state)))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("target", "code"),
    [({"name": "n1"}, 0), ({"kind": "Pod"}, 500), ({"kind": "Pod", "name": "n"}, 500)],
)
def test_a_binding_assigns_an_unassigned_pod_to_a_node(target: JsonObject, code: int) -> None:
    view = cluster(pod())
    asked_ = asked(view, {"metadata": {"name": "p"}, "target": target})
    if code:
        with pytest.raises(StatusError) as caught:
            bind(asked_)
        assert caught.value.code == code
        return
    bind(asked_)
    assert find(view.object("", "pods", "n", "p"), "spec", "nodeName") == "n1"
    with pytest.raises(StatusError, match="already assigned"):
        bind(asked_)
