"""Strategic merge patches, compared with the recorded answers of a real API server, and each of their directives."""

import copy
from typing import Final

import pytest

from tests.control_plane.recorded_answers.recorded_requests import Step, content, patches, steps
from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.merging.merge_keys import PatchError
from wharfinger.control_plane.merging.strategic_merge import strategic_merge
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find

DEPLOYMENT: Final = builtin_list_types("apps", "v1", "Deployment")
POD: Final = builtin_list_types("", "v1", "Pod")
RECORDED: Final = list(patches("application/strategic-merge-patch+json"))


@pytest.mark.parametrize(("step", "live", "answer"), RECORDED, ids=str)
def test_patches_agree_with_recorded_patches(step: Step, live: JsonObject, answer: JsonObject) -> None:
    before = copy.deepcopy(live)
    patched = apply_defaults(strategic_merge(live, as_object(step.request, "patch"), DEPLOYMENT))
    assert content(patched) == content(answer)
    assert live == before


def test_a_union_is_merged_without_retain_keys() -> None:
    scenario = steps("12-strategic-deployment")
    live, step = as_object(scenario[3].response, "live"), scenario[8]
    assert step.status == 422
    patched = strategic_merge(live, as_object(step.request, "patch"), DEPLOYMENT)
    assert find(patched, "spec", "strategy", "rollingUpdate") is not None


def spec(patched: JsonObject) -> JsonValue:
    return patched["spec"]


def named(*names: str) -> list[JsonValue]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        # Items are merged by key; items that the patch does not name keep their positions.
        (named("a", "b"), [{"name": "b", "image": "2"}], [{"name": "a"}, {"name": "b", "image": "2"}]),
        (named("a", "b"), [{"name": "c"}], named("c", "a", "b")),
        (named("a", "b", "c"), [{"name": "b", "$patch": "delete"}], named("a", "c")),
        (named("a", "b"), [{"$patch": "replace"}, {"name": "z"}], named("z")),
        (named("a", "b"), [{"$patch": "replace"}], []),
        (None, [{"name": "a"}, {"name": "b", "$patch": "delete"}], named("a")),
        (named("a"), [], named("a")),
        (
            [{"name": "a", "env": [{"name": "X"}]}],
            [{"name": "a", "env": [{"name": "Y"}]}],
            [{"name": "a", "env": named("Y", "X")}],
        ),
        ([{"name": "a", "args": ["1", "2"]}], [{"name": "a", "args": ["3"]}], [{"name": "a", "args": ["3"]}]),
    ],
)
def test_lists_are_merged_by_key(live: JsonValue, patch: JsonValue, result: JsonValue) -> None:
    before: JsonObject = {"spec": {} if live is None else {"containers": live}}
    assert spec(strategic_merge(before, {"spec": {"containers": patch}}, POD)) == {"containers": result}


@pytest.mark.parametrize(
    ("order", "patch", "result"),
    [
        ("cab", None, "cab"),
        ("ca", None, "bca"),
        ("b", None, "abc"),
        ("xc", "x", "xabc"),
        ("bz", "b", "abc"),
    ],
)
def test_lists_follow_the_order_directive(order: str, patch: str | None, result: str) -> None:
    change: JsonObject = {"$setElementOrder/containers": named(*order)}
    if patch is not None:
        change["containers"] = named(*patch)
    patched = strategic_merge({"spec": {"containers": named("a", "b", "c")}}, {"spec": change}, POD)
    assert spec(patched) == {"containers": named(*result)}


@pytest.mark.parametrize(("order", "patch"), [("ab", "ba"), ("a", "b")])
def test_an_order_that_contradicts_the_patch_is_refused(order: str, patch: str) -> None:
    change: JsonObject = {"$setElementOrder/containers": named(*order), "containers": named(*patch)}
    with pytest.raises(PatchError, match="doesn't match"):
        strategic_merge({"spec": {"containers": named("a", "b")}}, {"spec": change}, POD)


def test_lists_of_scalars_are_merged() -> None:
    live: JsonObject = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic_merge(live, {"metadata": {"finalizers": ["c", "a"]}}, POD) == {
        "metadata": {"finalizers": ["c", "a", "b"]}
    }
    assert strategic_merge(live, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD) == {
        "metadata": {"finalizers": ["b"]}
    }
    both: JsonObject = {"$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"]}
    assert strategic_merge(live, {"metadata": both | {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD) == {
        "metadata": {"finalizers": ["c", "b"]}
    }
    assert strategic_merge({"metadata": {}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD) == {
        "metadata": {}
    }


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}),
        ({"labels": {"$patch": "delete"}}, {"labels": {}}),
        ({"labels": {"a": None}}, {"labels": {}}),
        ({"labels": None}, {}),
        ({"labels": "odd"}, {"labels": "odd"}),
        ({"annotations": {"x": "1", "y": None}}, {"labels": {"a": "1"}, "annotations": {"x": "1"}}),
        ({"annotations": {"$patch": "delete"}}, {"labels": {"a": "1"}}),
    ],
)
def test_objects_are_replaced_or_deleted_by_directives(patch: JsonObject, result: JsonObject) -> None:
    live: JsonObject = {"metadata": {"labels": {"a": "1"}}}
    assert strategic_merge(live, {"metadata": patch}, POD) == {"metadata": result}


def test_other_keys_are_removed_by_retain_keys() -> None:
    live: JsonObject = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    volume: JsonObject = {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}
    assert spec(strategic_merge(live, {"spec": {"volumes": [volume]}}, POD)) == {
        "volumes": [{"name": "v", "configMap": {"name": "c"}}]
    }
    with pytest.raises(PatchError, match="retainKeys"):
        strategic_merge(live, {"spec": {"volumes": [volume | {"secret": {"secretName": "s"}}]}}, POD)


@pytest.mark.parametrize(
    "patch",
    [
        {"$patch": "unknown"},
        {"spec": {"containers": [{"image": "1"}]}},
        {"spec": {"containers": [{"$patch": "delete"}]}},
        {"spec": {"containers": [{"name": "a", "$patch": "unknown"}]}},
        {"spec": {"containers": ["odd"]}},
        {"spec": {"$retainKeys": "odd"}},
        {"metadata": {"$deleteFromPrimitiveList": ["odd"]}},
        {"metadata": {"$setElementOrder": ["odd"]}},
        {"metadata": {"$setElementOrder/finalizers": "odd"}},
        {"metadata": {"$setElementOrder/odd": []}},
        {"metadata": {"labels": {"$patch": "merge"}}},
        {"spec": {"containers": [[]]}},
        {"spec": {"containers": [{"name": "a", "$patch": "merge"}]}},
        {"spec": {"$setElementOrder/containers": [{}], "containers": [{"name": "a"}]}},
    ],
)
def test_invalid_patches_are_refused(patch: JsonObject) -> None:
    live: JsonObject = {"metadata": {"finalizers": ["a"], "labels": {}}, "spec": {"containers": [{"name": "a"}]}}
    with pytest.raises(PatchError):
        strategic_merge(live, patch, POD)


def test_deleting_from_a_value_that_is_no_list_changes_nothing() -> None:
    live: JsonObject = {"metadata": {"finalizers": "odd"}}
    assert strategic_merge(live, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD) == live
