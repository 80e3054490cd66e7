"""The hashes of pod templates, compared with those of a real controller manager."""

import pytest

from wharfinger.control_plane.controllers.workloads.template_hash import (
    revision_data,
    revision_hash,
    safe_encoded,
    template_hash,
)
from wharfinger.formats.json.value import JsonObject, JsonValue

PLAIN: JsonObject = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
DONE: JsonObject = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}


def template(label: str, **container: JsonValue) -> JsonObject:
    whole: JsonObject = {"resources": {}, **DONE, **container}
    return {"metadata": {"labels": {"app": label}}, "spec": {**PLAIN, "containers": [whole]}}


WEB = template(
    "web",
    name="web",
    image="registry.example/web:1",
    resources={"requests": {"cpu": "100m", "memory": "1536Mi"}},
    ports=[{"name": "http", "containerPort": 80, "protocol": "TCP"}],
    readinessProbe={
        "httpGet": {"path": "/", "port": "http", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    },
)


def test_hashes_agree_with_recorded_hashes() -> None:
    assert template_hash(WEB) == "849f4f86d9"
    assert template_hash(template("agent", name="a", image="registry.example/a:1")) == "687f5c849d"
    assert revision_hash(revision_data(template("db", name="db", image="registry.example/db:1<&")), 0) == "684b4497b"


def test_collisions_change_the_hash() -> None:
    assert len({template_hash(WEB), template_hash(WEB, 0), template_hash(WEB, 1)}) == 3
    assert revision_hash({"a": 1}) != revision_hash({"a": 1}, 0)


@pytest.mark.parametrize(
    "quantity", ["0", "1", "100m", "2500", "1k", "1Gi", "512Mi", "1Ei", "-1", "1e3", "9" * 20, "x"]
)
def test_quantities_are_distinguished(quantity: str) -> None:
    asked = template("web", name="web", image="i", resources={"requests": {"memory": quantity}})
    other = template("web", name="web", image="i", resources={"requests": {"memory": "3"}})
    assert template_hash(asked) != template_hash(other)


@pytest.mark.parametrize("shape", [None, [], "x", {"spec": 3}, {"spec": {"containers": [3, {"ports": "x"}]}}])
def test_a_value_of_any_shape_has_a_hash(shape: JsonValue) -> None:
    assert template_hash(shape)


def test_numbers_are_written_in_safe_characters() -> None:
    assert set(safe_encoded(9876543210)) <= set("456789bcdf")
