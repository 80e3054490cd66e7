from dataclasses import replace

from tests.control_plane.support.samples import definition
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition

WIDGET = kind_of_definition(definition())


def test_a_new_catalog_has_the_built_in_kinds() -> None:
    catalog = Catalog()

    found = catalog.find("apps", "v1", "deployments")

    assert found is not None
    assert found.api_version == "apps/v1"
    assert catalog.find("apps", "v2", "deployments") is None
    assert catalog.find("apps", "v1", "pods") is None


def test_custom_kinds_are_added_and_removed() -> None:
    catalog = Catalog()
    before = catalog.generation

    catalog.set_custom(WIDGET)
    assert catalog.find("example.com", "v1", "widgets") is not None
    assert catalog.groups()["example.com"] == ("v1",)
    assert [item.kind.kind for item in catalog.resources("example.com", "v1")] == ["Widget"]

    catalog.remove_custom("example.com", "widgets")
    catalog.remove_custom("example.com", "widgets")
    assert catalog.find("example.com", "v1", "widgets") is None
    assert catalog.generation == before + 2


def test_a_built_in_kind_is_never_replaced() -> None:
    catalog = Catalog()

    catalog.set_custom(replace(WIDGET, group="apps", plural="deployments"))

    found = catalog.find("apps", "v1", "deployments")
    assert found is not None
    assert found.kind.kind == "Deployment"
    assert catalog.generation == 0


def test_custom_groups_follow_the_built_in_groups_in_discovery_order() -> None:
    catalog = Catalog()
    catalog.set_custom(replace(WIDGET, group="aaa.example.com"))

    names = list(catalog.groups())

    assert names[:3] == ["", "apiregistration.k8s.io", "apps"]
    assert names[-1] == "aaa.example.com"


def test_versions_of_a_group_are_in_order_of_preference() -> None:
    catalog = Catalog()
    one = WIDGET.versions[0]
    versions = tuple(replace(one, name=name) for name in ("v1alpha1", "v2beta1", "v1", "v10", "v2", "x"))

    catalog.set_custom(replace(WIDGET, versions=versions))

    assert catalog.groups()["example.com"] == ("v10", "v2", "v1", "v2beta1", "v1alpha1", "x")


def test_a_kind_without_served_versions_is_not_shown() -> None:
    catalog = Catalog()

    catalog.set_custom(replace(WIDGET, versions=()))

    assert "example.com" not in catalog.groups()
    assert catalog.find("example.com", "v1", "widgets") is None
