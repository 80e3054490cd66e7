"""The scope of each kind: whether its objects belong to a namespace."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.orchestrator.scopes import Scopes


def definition(kind: str, scope: str) -> JsonObject:
    return {"kind": "CustomResourceDefinition", "spec": {"group": "x.io", "names": {"kind": kind}, "scope": scope}}


@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced"),
    [
        ("v1", "Namespace", False),
        ("v1", "Secret", True),
        ("apps/v1", "Deployment", True),
        ("x.io/v1", "Wide", False),
        ("x.io/v1", "Narrow", True),
        ("x.io/v1", "Unknown", None),
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease", True),
        ("wharfinger.dev/v1alpha1", "Module", False),
    ],
)
def test_scopes_of_builtin_and_defined_kinds_are_known(api_version: str, kind: str, *, namespaced: bool | None) -> None:
    scopes = Scopes([definition("Wide", "Cluster"), definition("Narrow", "Namespaced")])
    assert scopes.is_namespaced({"apiVersion": api_version, "kind": kind}) is namespaced


def test_a_malformed_definition_is_ignored() -> None:
    wrong: JsonObject = {"apiVersion": "x", "kind": "CustomResourceDefinition", "spec": {"group": [1]}}
    assert Scopes([wrong]).is_namespaced({"apiVersion": "x.io/v1", "kind": "Y"}) is None
