"""Upgrades of CRDs that are refused. One test has the cases that OLM v1 and kapp refuse."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.cluster.support.client_contract import widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.scale import scaled
from wharfinger.cluster.crds.narrowing import CrdRule
from wharfinger.cluster.crds.preflight import ALLOW_UNSAFE, MAX_PROBLEMS, CrdProblem, allows_unsafe, crd_problems
from wharfinger.cluster.watch.object_waits import wait_ready
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_list, find_object
from wharfinger.kube.resource import ObjectKey, ResourceType

CRD = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


def version(name: str, /, *, served: bool = True, storage: bool = False, **spec: JsonValue) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": {"spec": {"type": "object", "properties": {**spec}}}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def crd(*versions: JsonObject, stored: tuple[str, ...] = ("v1",), **spec: JsonValue) -> JsonObject:
    made = widget_crd()
    find_object(made, "spec")["versions"] = list(versions) or [version("v1", storage=True)]
    find_object(made, "spec").update(spec)
    return {**made, "status": {"storedVersions": list(stored)}}


def rules(live: JsonObject, wanted: JsonObject) -> list[CrdRule]:
    return [problem.rule for problem in crd_problems(live, wanted)]


STRING: JsonObject = {"type": "string"}
ONE = version("v1", storage=True, size={"type": "integer", "minimum": 1}, kind={"type": "string", "enum": ["a", "b"]})

REFUSED: list[tuple[str, CrdRule, JsonObject]] = [
    ("scope", CrdRule.SCOPE, crd(ONE, scope="Cluster")),
    ("stored version removed", CrdRule.STORED_VERSION, crd(version("v2", storage=True))),
    (
        "required field added",
        CrdRule.REQUIRED,
        crd(
            {
                **ONE,
                "schema": {"openAPIV3Schema": {**find_object(ONE, "schema", "openAPIV3Schema"), "required": ["spec"]}},
            }
        ),
    ),
    ("field removed", CrdRule.PROPERTY, crd(version("v1", storage=True, kind={"type": "string", "enum": ["a", "b"]}))),
    ("type changed", CrdRule.TYPE, crd(version("v1", storage=True, size=STRING, kind=STRING))),
    (
        "default added",
        CrdRule.DEFAULT,
        crd(version("v1", storage=True, size={"type": "integer", "minimum": 1, "default": 3}, kind=STRING)),
    ),
    (
        "enum value removed",
        CrdRule.ENUM,
        crd(
            version("v1", storage=True, size={"type": "integer", "minimum": 1}, kind={"type": "string", "enum": ["a"]})
        ),
    ),
    (
        "minimum raised",
        CrdRule.MINIMUM,
        crd(version("v1", storage=True, size={"type": "integer", "minimum": 2}, kind=STRING)),
    ),
    (
        "maximum added",
        CrdRule.MAXIMUM,
        crd(version("v1", storage=True, size={"type": "integer", "minimum": 1, "maximum": 9}, kind=STRING)),
    ),
]


@pytest.mark.parametrize(("rule", "wanted"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_definitions_refused_by_olm_are_refused(rule: CrdRule, wanted: JsonObject) -> None:
    assert rules(crd(ONE), wanted) == [rule]


def test_a_problem_names_version_path_and_change() -> None:
    (problem,) = crd_problems(crd(ONE), REFUSED[-2][2])
    assert problem == CrdProblem(CrdRule.MINIMUM, "v1 .spec.size: minimum was 1, and is 2")
    assert str(problem) == "v1 .spec.size: minimum was 1, and is 2 (minimum-raised)"
    (gone,) = crd_problems(crd(ONE), crd(version("v2", storage=True)))
    assert gone.message.startswith("v1 was removed, but objects may still be stored in it")
    (whole,) = crd_problems(crd(ONE), REFUSED[2][2])
    assert whole.message == "v1 .spec: it is required now"
    closed = crd({**ONE, "schema": {"openAPIV3Schema": {"type": "string"}}})
    assert "v1 the object: the type was object, and is string" in [
        one.message for one in crd_problems(crd(ONE), closed)
    ]


def test_equal_and_wider_definitions_are_accepted() -> None:
    live = crd(ONE)
    assert crd_problems(live, live) == ()
    more = version("v1", storage=True, size={"type": "number"}, kind=STRING, new=STRING)
    assert crd_problems(live, crd(more, version("v2", size=STRING))) == ()


def test_names_that_identify_objects_may_not_change() -> None:
    names = find_object(crd(), "spec", "names")
    for name, value in (("kind", "Gadget"), ("plural", "gadgets"), ("listKind", "Widgets")):
        assert rules(crd(), crd(names={**names, name: value})) == [CrdRule.NAMES]
    assert rules(crd(), crd(group="other.test")) == [CrdRule.NAMES]
    implied = {name: value for name, value in names.items() if name != "listKind"}
    assert rules(crd(), crd(names={**implied, "shortNames": ["w"]})) == []


def test_a_version_may_be_removed_once_no_object_is_stored_in_it() -> None:
    both = (version("v1beta1", a=STRING), version("v1", storage=True))
    assert rules(crd(*both, stored=("v1beta1", "v1")), crd()) == [CrdRule.STORED_VERSION]
    assert rules(crd(*both), crd()) == []
    untold = {name: value for name, value in crd(*both).items() if name != "status"}
    assert rules(untold, crd(version("v2", storage=True))) == [CrdRule.STORED_VERSION]


def test_only_versions_in_use_are_compared() -> None:
    live = crd(version("v1alpha1", served=False, a=STRING), version("v1", storage=True))
    assert rules(live, crd(version("v1alpha1", served=False), version("v1", storage=True))) == []
    served = crd(version("v1alpha1", a=STRING), version("v1", storage=True))
    assert rules(served, crd(version("v1alpha1", served=False), version("v1", storage=True))) == []
    assert rules(served, crd(version("v1alpha1"), version("v1", storage=True))) == [CrdRule.PROPERTY]
    stored = crd(version("v1alpha1", served=False, a=STRING), version("v1", storage=True), stored=("v1alpha1", "v1"))
    assert rules(stored, crd(version("v1alpha1", served=False), version("v1", storage=True))) == [CrdRule.PROPERTY]


def test_subresources_may_not_be_removed() -> None:
    live = crd({**ONE, "subresources": {"status": {}, "scale": {}}})
    assert rules(live, crd({**ONE, "subresources": {"status": {}}})) == [CrdRule.SUBRESOURCE]
    assert rules(live, crd(ONE)) == [CrdRule.SUBRESOURCE, CrdRule.SUBRESOURCE]
    assert rules(crd(ONE), live) == []


def owned_by(manager: str, made: JsonObject, operation: str = "Apply") -> JsonObject:
    fields: JsonObject = {"f:spec": {"f:conversion": {"f:strategy": {}}}}
    own: JsonObject = {"manager": manager, "operation": operation, "fieldsV1": fields}
    entries: list[JsonValue] = [{"manager": "other", "fieldsV1": {}}, own]
    return {**made, "metadata": {**find_object(made, "metadata"), "managedFields": entries}}


def test_our_conversion_between_versions_may_not_be_dropped() -> None:
    versions = (version("v1", storage=True), version("v2"))
    webhook: JsonObject = {"strategy": "Webhook", "webhook": {}}
    live = owned_by("wharfinger", crd(*versions, conversion=webhook))
    assert rules(live, crd(*versions)) == [CrdRule.CONVERSION]
    assert rules(live, crd(*versions, conversion={"strategy": "None"})) == [CrdRule.CONVERSION]
    assert rules(live, crd(*versions, conversion=webhook)) == []
    assert rules(live, crd(version("v1", storage=True))) == []
    assert rules(crd(*versions), crd(*versions, conversion=webhook)) == []


def test_a_conversion_patched_in_by_hooks_may_be_omitted() -> None:
    """Hooks may set the conversion of a CRD, so a chart that omits it does not request its removal."""
    versions = (version("v1", storage=True), version("v2"))
    live = owned_by("wharfinger", crd(*versions, conversion={"strategy": "Webhook"}), operation="Update")
    assert rules(live, crd(*versions)) == []


def test_a_conversion_applied_by_another_manager_may_be_omitted() -> None:
    versions = (version("v1", storage=True), version("v2"))
    live = owned_by("cert-manager", crd(*versions, conversion={"strategy": "Webhook"}))
    assert rules(live, crd(*versions)) == []
    assert rules(live, crd(*versions, conversion={"strategy": "None"})) == [CrdRule.CONVERSION]
    assert [one.rule for one in crd_problems(live, crd(*versions), manager="cert-manager")] == [CrdRule.CONVERSION]


def test_the_number_of_problems_is_bounded() -> None:
    many: dict[str, JsonValue] = {f"f{number}": STRING for number in range(100)}
    live = crd(version("v1", served=True, storage=True, **many))
    assert len(crd_problems(live, crd())) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("value", "allowed"), [("true", True), (" True ", True), ("false", False), ("", False), (None, False)]
)
def test_the_annotation_allows_unsafe_changes(value: str | None, allowed: bool) -> None:
    annotations: JsonObject = {} if value is None else {ALLOW_UNSAFE: value}
    assert allows_unsafe({"metadata": {"annotations": annotations}}) is allowed


async def test_a_definition_read_back_from_the_server_has_no_problems(autojump_clock: MockClock) -> None:
    """The live CRD has defaults, managedFields and a status. They must not count as changes in the next upgrade."""
    made = {name: value for name, value in crd(ONE, version("v2")).items() if name != "status"}
    async with memory_cluster() as client:
        await client.apply(made, field_manager="wharfinger")
        key = ObjectKey(CRD, "", "widgets.example.test")
        await wait_ready(client, [key])
        live = await client.get(key)
    assert find_list(live, "status", "storedVersions") == ["v1"]
    assert crd_problems(live, made) == ()
    assert rules(live, crd(version("v2", storage=True))) == [CrdRule.STORED_VERSION]


STRANGE: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["v1", "Webhook", "", "true"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("metadata", "annotations", "managedFields", "spec", "scope", "names", "kind", "versions", "name"),
                    *("served", "storage", "schema", "openAPIV3Schema", "subresources", "status", "storedVersions"),
                    *("conversion", "strategy", "fieldsV1", "properties", "type"),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=scaled(5_000, 150), deadline=None)
@given(
    STRANGE,
    st.sampled_from(["live", "wanted", "both"]),
    st.lists(st.sampled_from(["metadata", "spec", "status"]), min_size=1),
)
def test_malformed_definitions_raise_only_the_declared_error(value: JsonValue, where: str, members: list[str]) -> None:
    live, wanted = deepcopy(crd(ONE)), deepcopy(crd(ONE))
    for made, name in ((live, "live"), (wanted, "wanted")):
        if where in (name, "both"):
            for member in members:
                made[member] = value
    try:
        problems = crd_problems(as_object(live, "live"), as_object(wanted, "wanted"))
    except FormatError:
        return
    assert all(str(problem) for problem in problems)
