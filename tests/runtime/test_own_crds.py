"""The CRDs that ship: whole, consistent with the code that reads them, and established at a real control plane."""

from datetime import UTC, datetime
from typing import cast

from wharfinger.formats.json_value import JsonObject, find, find_list, find_str
from wharfinger.runtime import status as statuses
from wharfinger.runtime.own_crds import CRD, own_crds
from wharfinger.runtime.resources import APPLICATION, PACKAGE_REPOSITORY


def by_kind() -> dict[str, JsonObject]:
    return {find_str(crd, "spec", "names", "kind"): crd for crd in own_crds()}


def test_they_serve_what_the_code_reads() -> None:
    for resource in (APPLICATION, PACKAGE_REPOSITORY):
        crd = by_kind()[resource.kind]
        assert find_str(crd, "metadata", "name") == f"{resource.plural}.{resource.group}"
        assert find_str(crd, "spec", "scope") == ("Namespaced" if resource.namespaced else "Cluster")
        assert find_str(crd, "spec", "versions", 0, "name") == resource.version
    assert CRD.kind == find_str(own_crds()[0], "kind")


def test_the_status_schema_has_every_field_that_is_written() -> None:
    properties = find(
        by_kind()["Application"], "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status"
    )
    status = statuses.released(statuses.fresh(1, datetime(2026, 1, 1, tzinfo=UTC)), "1.0.0", "sha256:aa", 1)
    written = statuses.external(status)
    declared = cast("JsonObject", find(properties, "properties"))
    assert set(written) == set(declared)
    condition = cast("JsonObject", find(declared, "conditions", "items", "properties"))
    for entry in find_list(written, "conditions"):
        assert isinstance(entry, dict)
        assert set(entry) == set(condition)
    assert set(cast("JsonObject", written["summary"])) == set(
        cast("JsonObject", find(declared, "summary", "properties"))
    )
