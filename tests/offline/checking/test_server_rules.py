"""Checks of manifests by the embedded API server."""

from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.http_client import open_client
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.offline.checking.findings import Finding, Rule
from wharfinger.offline.checking.server_rules import server_findings
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.store.identity import object_id

CRD: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Lamp", "plural": "lamps", "singular": "lamp", "listKind": "LampList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"watts": {"type": "integer", "maximum": 100}}}
                        },
                    }
                },
            }
        ],
    },
}


def obj(api_version: str, kind: str, name: str = "x", **fields: JsonValue) -> Manifest:
    made: JsonObject = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "n"}, **fields}
    return Manifest(object_id(made), made)


async def judged(*manifests: Manifest) -> list[Finding]:
    async with (
        open_control_plane() as server,
        open_client(Connection(LOCAL, bearer("")), transport=server.transport()) as client,
    ):
        return await server_findings(manifests, client)


async def test_valid_objects_have_no_findings() -> None:
    crd = Manifest(object_id(CRD), CRD)
    assert (
        await judged(obj("v1", "ConfigMap", data={"a": "b"}), crd, obj("example.com/v1", "Lamp", spec={"watts": 60}))
        == []
    )


async def test_unknown_fields_wrong_types_and_broken_rules_are_reported() -> None:
    crd = Manifest(object_id(CRD), CRD)
    findings = await judged(
        crd,
        obj("example.com/v1", "Lamp", "bright", spec={"watts": 600}),
        obj("v1", "ConfigMap", "typo", dta={"a": "b"}),
        obj("v1", "Service", "numbers", spec={"ports": "80"}),
        obj("apps/v1", "Deployment", "empty", spec={}),
    )
    assert [each.id.name for each in findings if each.id is not None] == ["typo", "empty", "bright", "numbers"]
    assert {each.rule for each in findings} == {Rule.SERVER}


async def test_a_kind_without_a_definition_is_reported_once() -> None:
    (finding,) = await judged(obj("example.com/v1", "Lamp", "one"), obj("example.com/v1", "Lamp", "two"))
    assert finding.rule is Rule.UNDEFINED
    assert "Lamp.example.com" in finding.message


async def test_wharfinger_kinds_are_checked() -> None:
    (finding,) = await judged(obj("wharfinger.dev/v1alpha1", "Application", spec={"packageName": "web"}))
    assert "packageVersion" in finding.message


async def test_values_of_secrets_are_not_quoted() -> None:
    (finding,) = await judged(obj("v1", "Secret", stringData={"key": {"password": "HUNTER"}}))
    assert "HUNTER" not in finding.message
    assert finding.message.startswith("the server refuses it: ")


async def test_an_object_with_a_generated_name_is_checked() -> None:
    made: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "n"}}
    assert await judged(Manifest(object_id(made), made)) == []


async def test_objects_of_a_chart_get_the_namespace_of_its_release() -> None:
    made: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    role: JsonObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}}
    assert await judged(*(Manifest(object_id(each, "apps"), each) for each in (made, role))) == []
