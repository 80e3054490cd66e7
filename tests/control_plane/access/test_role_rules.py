import pytest

from wharfinger.control_plane.access.role_rules import Attributes, allows, rules_of, strings
from wharfinger.control_plane.access.users import User
from wharfinger.formats.json.value import JsonObject, JsonValue

JANE = User("jane", ())


def rule(**fields: JsonValue) -> JsonObject:
    return {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], **fields}


@pytest.mark.parametrize(
    ("one", "asked", "allowed"),
    [
        (rule(), Attributes(JANE, "get", resource="pods"), True),
        (rule(), Attributes(JANE, "list", resource="pods"), False),
        (rule(verbs=["*"]), Attributes(JANE, "list", resource="pods"), True),
        (rule(), Attributes(JANE, "get", resource="pods", group="apps"), False),
        (rule(apiGroups=["*"]), Attributes(JANE, "get", resource="pods", group="apps"), True),
        (rule(), Attributes(JANE, "get", resource="pods", subresource="log"), False),
        (rule(resources=["pods/log"]), Attributes(JANE, "get", resource="pods", subresource="log"), True),
        (rule(resources=["*/log"]), Attributes(JANE, "get", resource="pods", subresource="log"), True),
        (rule(resources=["*/log"]), Attributes(JANE, "get", resource="pods"), False),
        (rule(resources=["*"]), Attributes(JANE, "get", resource="pods", subresource="log"), True),
        (rule(resourceNames=["a"]), Attributes(JANE, "get", resource="pods", name="a"), True),
        (rule(resourceNames=["a"]), Attributes(JANE, "get", resource="pods"), False),
        (rule(resources="pods"), Attributes(JANE, "get", resource="pods"), False),
        (rule(nonResourceURLs=["/a/*"]), Attributes(JANE, "get", path="/a/b"), True),
        (rule(nonResourceURLs=["/a"]), Attributes(JANE, "get", path="/a/b"), False),
        (rule(nonResourceURLs=["*"]), Attributes(JANE, "get", path="/a/b"), True),
    ],
)
def test_rules_allow_matching_verbs_and_resources(one: JsonObject, asked: Attributes, allowed: bool) -> None:
    assert allows(one, asked) is allowed


def test_non_string_values_in_rules_are_ignored() -> None:
    assert strings({"verbs": ["get", 1, None]}, "verbs") == ("get",)
    assert strings({"verbs": "get"}, "verbs") == ()
    assert rules_of({"rules": [{"verbs": []}, 3]}) == ({"verbs": []},)
