"""Changes of objects that the API server refuses, and changes that it accepts but that cannot be reversed."""

from typing import Final

import pytest

from wharfinger.cluster.releases.way_back import one_way, refusals
from wharfinger.formats.json.value import JsonObject


def config(**fields: bool | str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": str(fields.pop("a", "1"))}, **fields}


def claim(size: str, **spec: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {"resources": {"requests": {"storage": size}}, **spec},
    }


def crd(**schema: str) -> JsonObject:
    properties: JsonObject = {name: {"type": kind} for name, kind in schema.items()}
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names: JsonObject = {"kind": "Ham", "plural": "hams", "singular": "ham", "listKind": "HamList"}
    spec: JsonObject = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    metadata: JsonObject = {"name": "hams.example.com"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def workload(kind: str, selector: str, **more: str) -> JsonObject:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "spec": {"selector": {"matchLabels": {"app": selector}}, **more}}


REFUSED: Final[dict[str, tuple[JsonObject, JsonObject, str]]] = {
    "a claim shrinks": (claim("2Gi"), claim("1Gi"), "it has 2Gi and cannot shrink to 1Gi"),
    "a claim moves": (
        claim("1Gi", storageClassName="a"),
        claim("1Gi", storageClassName="b"),
        "storageClassName cannot be changed",
    ),
    "immutable data": (
        config(immutable=True),
        config(immutable=True, a="2"),
        "it is immutable, so its data cannot be changed",
    ),
    "no longer immutable": (config(immutable=True), config(), "it is immutable, and cannot become mutable again"),
    "a selector": (workload("Deployment", "a"), workload("Deployment", "b"), "spec.selector cannot be changed"),
    "a template of a Job": (
        workload("Job", "a", template="x"),
        workload("Job", "a", template="y"),
        "spec.template cannot",
    ),
    "a service of a StatefulSet": (
        workload("StatefulSet", "a", serviceName="x"),
        workload("StatefulSet", "a", serviceName="y"),
        "spec.serviceName cannot be changed",
    ),
    "a definition narrows": (crd(cure="string"), crd(cure="integer"), "cure"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_changes_are_recognized(name: str) -> None:
    present, wanted, message = REFUSED[name]
    assert any(message in why for why in refusals(present, wanted))
    assert not refusals(present, present)


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (claim("1Gi"), claim("2Gi")),
        (claim("1024Mi"), claim("1Gi")),
        (config(), config(a="2")),
        (config(), config(immutable=True, a="2")),
        (workload("Deployment", "a"), workload("Deployment", "a", replicas="2")),
        (
            {"apiVersion": "v1", "kind": "Service", "spec": {"type": "A"}},
            {"apiVersion": "v1", "kind": "Service", "spec": {}},
        ),
    ],
)
def test_other_changes_are_not_reported_as_refused(present: JsonObject, wanted: JsonObject) -> None:
    assert not refusals(present, wanted)


def job(container: JsonObject, **more: int) -> JsonObject:
    template: JsonObject = {"spec": {"containers": [container]}, **more}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}


def test_defaults_of_the_api_server_are_not_changes() -> None:
    plain: JsonObject = {"name": "a", "image": "a"}
    assert not refusals(job({**plain, "imagePullPolicy": "Always"}, extra=1), job(plain))


def test_irreversible_changes_are_recognized() -> None:
    assert one_way(claim("1Gi"), claim("2Gi")) == ("it has 2Gi and cannot shrink to 1Gi",)
    assert one_way(config(), config(immutable=True)) == ("it is immutable, and cannot become mutable again",)
    assert one_way(crd(cure="string"), crd(cure="string", age="integer")) == refusals(
        crd(cure="string", age="integer"), crd(cure="string")
    )
    # The API server refuses this change, so nothing has to be reversed.
    assert one_way(workload("Deployment", "a"), workload("Deployment", "b")) == ()
    assert one_way(claim("2Gi"), claim("1Gi")) == ()
    assert one_way(config(), config(a="2")) == ()


def test_a_definition_may_allow_the_change_and_must_be_readable() -> None:
    allowed = crd(cure="integer")
    allowed["metadata"] = {"annotations": {"wharfinger.dev/allow-unsafe-crd-upgrade": "true"}}
    assert not refusals(crd(cure="string"), allowed)
    broken: JsonObject = {**crd(cure="string"), "spec": {"versions": "none"}}
    assert "cannot be read" in refusals(broken, crd(cure="string"))[0]
