"""Drift policies as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.objects.drift_policy import (
    MAX_PATHS,
    MAX_RULES,
    DriftMode,
    DriftPolicy,
    DriftPolicyError,
    IgnoreRule,
    read_drift_policy,
)
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.pointers import pointer_of, pointer_steps
from wharfinger.formats.json.value import JsonObject, JsonValue

DEPLOYMENT: JsonObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web-1", "namespace": "prod", "labels": {"app": "web"}, "annotations": {"x/owner": "shop"}},
}


def test_a_policy_is_read() -> None:
    said: JsonObject = {
        "mode": "warn",
        "ignore": [
            {
                "paths": ["/spec/replicas"],
                "target": {"kind": "Deployment", "name": "web-.*", "labelSelector": "app=web"},
            },
            {"paths": ["", "/a~1b/*"]},
        ],
    }

    assert read_drift_policy(said, "spec.drift") == DriftPolicy(
        DriftMode.WARN,
        (
            IgnoreRule(("/spec/replicas",), kind="Deployment", name="web-.*", label_selector="app=web"),
            IgnoreRule(("", "/a~1b/*")),
        ),
    )
    assert read_drift_policy({}, "x") == DriftPolicy(DriftMode.CORRECT, ())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([], "p: expected an object"),
        ({"mode": "fix"}, "p.mode: 'fix' is not one of off, warn, correct"),
        ({"mode": 1}, "expected a string"),
        ({"modes": "off"}, "p: 'modes' is not one of ignore, mode"),
        ({"ignore": {}}, "expected a list"),
        ({"ignore": [{}]}, "p.ignore[0].paths: one to 100 JSON pointers are needed, not 0"),
        ({"ignore": [{"paths": ["/a"] * (MAX_PATHS + 1)}]}, "not 101"),
        ({"ignore": [{"paths": ["/a"]}] * (MAX_RULES + 1)}, "p.ignore: 101 rules are over the limit of 100"),
        (
            {"ignore": [{"paths": ["spec"]}]},
            "p.ignore[0].paths[0]: 'spec' is not a JSON pointer: a pointer begins with /",
        ),
        ({"ignore": [{"paths": ["/a~2"]}]}, "~ is written ~0"),
        ({"ignore": [{"paths": ["/a~"]}]}, "~ is written ~0"),
        ({"ignore": [{"paths": [5]}]}, "expected a JSON pointer such as /spec/replicas, found"),
        ({"ignore": [{"paths": ["/" + "a" * 2000]}]}, "over the limit of 1024"),
        ({"ignore": [{"paths": ["/a"], "targets": {}}]}, "p.ignore[0]: 'targets' is not one of paths, target"),
        ({"ignore": [{"paths": ["/a"], "target": {"Kind": "x"}}]}, "p.ignore[0].target: 'Kind' is not one of"),
        ({"ignore": [{"paths": ["/a"], "target": {"name": "("}}]}, "p.ignore[0].target.name: "),
        ({"ignore": [{"paths": ["/a"], "target": {"name": "a)|(b"}}]}, "p.ignore[0].target.name: "),
        ({"ignore": [{"paths": ["/a"], "target": {"name": "(?=a)"}}]}, "look-ahead"),
        ({"ignore": [{"paths": ["/a"], "target": {"labelSelector": "a in"}}]}, "p.ignore[0].target.labelSelector: "),
    ],
)
def test_invalid_policies_are_refused(said: JsonValue, why: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_drift_policy(said, "p")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("target", "takes"),
    [
        ({}, True),
        ({"group": "apps", "version": "v1", "kind": "Deployment", "name": "web-1", "namespace": "prod"}, True),
        ({"kind": "Deploy"}, False),
        ({"kind": "Stateful.*|Deploy.*"}, True),
        ({"name": "web"}, False),
        ({"name": "web-[0-9]"}, True),
        ({"group": "batch"}, False),
        ({"version": "v2"}, False),
        ({"namespace": "p"}, False),
        ({"labelSelector": "app in (web,api),!x"}, True),
        ({"labelSelector": "app!=web"}, False),
        ({"annotationSelector": "x/owner=shop"}, True),
        ({"annotationSelector": "other"}, False),
    ],
)
def test_a_target_matches_objects(target: JsonObject, *, takes: bool) -> None:
    policy = read_drift_policy({"ignore": [{"paths": ["/a"], "target": target}]}, "p")

    assert policy.ignore[0].matches_object(DEPLOYMENT) is takes


def test_the_core_group_is_an_empty_group() -> None:
    assert IgnoreRule(("/a",), version="v1", kind="Secret").matches_object({"apiVersion": "v1", "kind": "Secret"})
    assert not IgnoreRule(("/a",), group="v1").matches_object({"apiVersion": "v1", "kind": "Secret"})


@pytest.mark.parametrize(
    ("rule", "manager", "subresource", "takes"),
    [
        (IgnoreRule(("/a",)), "", "", True),
        (IgnoreRule(("/a",), subresource="scale"), "hpa", "scale", True),
        (IgnoreRule(("/a",), subresource="scale"), "hpa", "", False),
        (IgnoreRule(("/a",), not_by="kubectl.*"), "kubectl-edit", "", False),
        (IgnoreRule(("/a",), by="ops-.*"), "ops-x", "", True),
        (IgnoreRule(("/a",), by="ops-.*"), "x-ops-x", "", False),
        (IgnoreRule(("/a",), by="ops-.*", not_by=".*-x"), "ops-x", "", False),
    ],
)
def test_a_rule_matches_writers(rule: IgnoreRule, manager: str, subresource: str, *, takes: bool) -> None:
    assert rule.matches_writer(manager, subresource) is takes


@given(st.lists(st.text()))
def test_pointers_round_trip(segments: list[str]) -> None:
    assert pointer_steps(pointer_of(segments)) == tuple(segments)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["mode", "ignore", "paths", "target", "name", "kind", "labelSelector", "x"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_is_a_policy_or_refused(said: JsonValue) -> None:
    try:
        policy = read_drift_policy(said, "p")
    except FormatError:
        return
    for rule in policy.ignore:
        rule.matches_object(DEPLOYMENT)


def test_a_policy_error_is_a_format_error() -> None:
    assert issubclass(DriftPolicyError, FormatError)
