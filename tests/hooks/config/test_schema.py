"""The shapes that the documents of hooks must have: for each version of the format, and for hooks of packages and global
hooks."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.schema import VERSION_0, VERSION_1
from wharfinger.hooks.config.shapes import problems

PACKAGE, GLOBAL = HookScope.PACKAGE, HookScope.GLOBAL
AROUND_CHART = ("beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm")
AROUND_ALL = ("beforeAll", "afterAll")


@pytest.mark.parametrize("scope", HookScope)
def test_documents_must_be_nonempty_objects_with_known_keys(scope: HookScope) -> None:
    assert list(problems([], VERSION_0[scope])) == ['it must be of type object: "array"']
    assert list(problems({}, VERSION_0[scope])) == ["it should have at least 1 properties"]
    assert list(problems({"x": 1}, VERSION_1[scope])) == ["x is a forbidden property", "configVersion is required"]


@pytest.mark.parametrize("key", AROUND_CHART + AROUND_ALL)
@pytest.mark.parametrize("shapes", [VERSION_0, VERSION_1])
def test_order_keys_are_accepted_only_in_their_scope(key: str, shapes: object) -> None:
    allowed, other = (PACKAGE, GLOBAL) if key in AROUND_CHART else (GLOBAL, PACKAGE)
    versioned: JsonObject = {} if shapes is VERSION_0 else {"configVersion": "v1"}
    table = VERSION_0 if shapes is VERSION_0 else VERSION_1
    assert list(problems({**versioned, key: 1}, table[allowed])) == []
    assert list(problems({**versioned, key: -1}, table[allowed])) == [f"{key} should be from 0 to 4294967295"]
    (problem,) = problems({**versioned, key: 1}, table[other])
    assert problem.startswith(f"{key} is a forbidden property: only ")


@pytest.mark.parametrize("key", ["kubernetes", "kubernetesValidating", "settings"])
def test_version_0_refuses_keys_of_version_1(key: str) -> None:
    assert list(problems({key: []}, VERSION_0[PACKAGE])) == [f"{key} is a forbidden property"]
