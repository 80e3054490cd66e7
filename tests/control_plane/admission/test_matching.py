import pytest

from tests.control_plane.support.policy_asking import MATCH, RULE, asked
from wharfinger.control_plane.admission.matching import equivalents, match_of, matched
from wharfinger.formats.json.value import JsonObject

OTHER: JsonObject = {"matchLabels": {"a": "b"}}


@pytest.mark.parametrize(
    ("changed", "fits"),
    [
        ({}, True),
        ({"resourceRules": []}, True),
        ({"resourceRules": [{**RULE, "operations": ["UPDATE"]}]}, False),
        ({"resourceRules": [{**RULE, "apiGroups": ["apps"]}]}, False),
        ({"resourceRules": [{**RULE, "apiVersions": ["v2"]}]}, False),
        ({"resourceRules": [{**RULE, "resources": ["*/*"]}]}, True),
        ({"resourceRules": [{**RULE, "resources": ["configmaps/status"]}]}, False),
        ({"resourceRules": [{**RULE, "scope": "Cluster"}]}, False),
        ({"resourceRules": [{**RULE, "scope": "Namespaced", "resourceNames": ["b", "a"]}]}, True),
        ({"resourceRules": [{**RULE, "resourceNames": ["b"]}]}, False),
        ({"excludeResourceRules": [RULE]}, False),
        ({"objectSelector": OTHER}, False),
        ({"namespaceSelector": OTHER}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
    ],
)
def test_resource_rules_select_requests(changed: JsonObject, fits: bool) -> None:
    admission, resource, backend = asked()

    assert matched({**MATCH, **changed}, admission, resource, backend.catalog) == (resource if fits else None)


def test_equivalent_versions_match_unless_the_policy_is_exact() -> None:
    admission, resource, backend = asked("horizontalpodautoscalers", "autoscaling", "v2")
    rule: JsonObject = {**RULE, "apiGroups": ["autoscaling"], "resources": ["*"]}

    taken = matched({**MATCH, "resourceRules": [rule]}, admission, resource, backend.catalog)

    assert taken is not None
    assert (taken.version.name, resource.version.name) == ("v1", "v2")
    exactly: JsonObject = {**MATCH, "resourceRules": [rule], "matchPolicy": "Exact"}
    assert matched(exactly, admission, resource, backend.catalog) is None


def test_events_of_both_groups_are_equivalent() -> None:
    _, resource, backend = asked("events", "events.k8s.io")

    assert {other.kind.group for other in equivalents(resource, backend.catalog)} == {"", "events.k8s.io"}


def test_a_namespace_is_selected_by_its_own_labels() -> None:
    admission, resource, backend = asked("namespaces", metadata={"name": "a", "labels": {"a": "b"}})
    rule: JsonObject = {**RULE, "resources": ["namespaces"], "scope": "Cluster"}
    match: JsonObject = {**MATCH, "namespaceSelector": OTHER, "resourceRules": [rule]}

    assert matched(match, admission, resource, backend.catalog) == resource
    assert match_of({"spec": {"matchResources": match}}, "matchResources") == match
