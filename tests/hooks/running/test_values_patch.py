"""Values patches. A patch is first applied strictly, then stored in a compact form, and later applied again tolerantly. The
tests check each step, and that the steps give consistent values.
"""

import copy
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list
from wharfinger.hooks.running import values_patch
from wharfinger.hooks.running.values_patch import (
    MAX_IN_LIST,
    MAX_STORED,
    ValuesPatchError,
    apply_values_patch,
    compacted,
    reapplied,
)

VALUES: JsonObject = {"global": {"a": 1}, "mod": {"sleep": 600, "list": [1, 2], "map": {"k": "v"}}}


def add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> JsonObject:
    return {"op": "remove", "path": path}


def kept_after(*patches: Sequence[JsonValue], values: JsonObject = VALUES) -> tuple[JsonValue, ...]:
    """Return the stored operations after these patches, applied one after the other."""
    stored: tuple[JsonValue, ...] = ()
    for patch in patches:
        stored = compacted(stored, patch, values)
        values = apply_values_patch(values, patch, root="mod")
    return stored


def test_a_patch_is_applied_in_order_to_a_copy() -> None:
    before = copy.deepcopy(VALUES)
    patched = apply_values_patch(
        VALUES, [add("/mod/x", {}), add("/mod/x/y", [1]), add("/mod/x/y/-", 2), remove("/mod/sleep")], root="mod"
    )
    assert patched == {"global": {"a": 1}, "mod": {"list": [1, 2], "map": {"k": "v"}, "x": {"y": [1, 2]}}}
    assert before == VALUES


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ([remove("/mod/gone")], "cannot apply values patch: .*gone"),
        ([add("/mod/gone/x", 1)], "cannot apply values patch: .*gone"),
        ([{"op": "test", "path": "/mod/sleep", "value": 1}], "cannot apply values patch"),
        ([add("/mod/a", 1), add("/global/a", 2)], "operation 2: path '/global/a' is not below /mod"),
        ([add("/module/a", 1)], "operation 1: path '/module/a' is not below /mod"),
        ([add("/", 1)], "is not below /mod"),
        ([{"op": "move", "from": "/global/a", "path": "/mod/a"}], "from '/global/a' is not below /mod"),
        ([remove("/mod")], "/mod must stay an object, is null"),
        ([add("/mod", [])], "/mod must stay an object, is a list"),
    ],
)
def test_inapplicable_or_forbidden_patches_are_refused(patch: list[JsonValue], said: str) -> None:
    with pytest.raises(ValuesPatchError, match=said):
        apply_values_patch(VALUES, patch, root="mod")


def test_a_copy_may_have_any_source() -> None:
    patch: list[JsonValue] = [{"op": "copy", "from": "/global/a", "path": "/mod/a"}]
    assert find(apply_values_patch(VALUES, patch, root="mod"), "mod", "a") == 1
    assert kept_after(patch) == (add("/mod/a", 1),)


def test_stored_patches_equal_the_contract_example() -> None:
    first = kept_after([add("/mod/a", {})], [add("/mod/a/k", 1)])
    assert first == (add("/mod/a", {}), add("/mod/a/k", 1))
    assert kept_after([add("/mod/a", {})], [add("/mod/a/k", 1)], [remove("/mod/a")]) == (remove("/mod/a"),)
    assert kept_after(
        [add("/mod/a", {}), add("/mod/a/k", 1)], [remove("/mod/a")], [add("/mod/a", []), add("/mod/a/0", "x")]
    ) == (add("/mod/a", []), add("/mod/a/0", "x"))


def test_the_last_operation_on_a_path_is_stored_and_paths_are_sorted() -> None:
    patches = [[add("/mod/b", number), add("/mod/a", {"n": number})] for number in range(5)]
    assert kept_after(*patches) == (add("/mod/a", {"n": 4}), add("/mod/b", 4))


def test_paths_with_a_common_prefix_are_different() -> None:
    assert kept_after([add("/mod/ab", 1), add("/mod/a", 2)]) == (add("/mod/a", 2), add("/mod/ab", 1))


def test_operations_on_a_list_are_stored_in_order() -> None:
    patch = [add("/mod/list/0", "first"), remove("/mod/list/2"), add("/mod/list/-", "last"), add("/mod/list/-", "last")]
    stored = kept_after(patch)
    assert stored == tuple(patch)
    assert find_list(reapplied(VALUES, stored), "mod", "list") == ["first", 1, "last", "last"]


def test_numeric_member_names_are_not_list_indices() -> None:
    values: JsonObject = {"mod": {"ports": {}}}
    assert kept_after(*([add("/mod/ports/80", number)] for number in range(9)), values=values) == (
        add("/mod/ports/80", 8),
    )


def test_frequently_changed_list_is_stored_as_a_whole() -> None:
    runs = [[remove("/mod/list/0"), add("/mod/list/0", number)] for number in range(MAX_IN_LIST)]
    assert kept_after(*runs[: MAX_IN_LIST // 2]) == tuple(step for run in runs[: MAX_IN_LIST // 2] for step in run)
    stored = kept_after(*runs)
    assert len(stored) < MAX_IN_LIST
    assert find_list(reapplied(VALUES, stored), "mod", "list") == [MAX_IN_LIST - 1, 2]


def test_test_move_and_copy_operations_are_resolved() -> None:
    patch: list[JsonValue] = [
        {"op": "test", "path": "/mod/sleep", "value": 600},
        {"op": "move", "from": "/mod/map", "path": "/mod/moved"},
        {"op": "copy", "from": "/mod/moved/k", "path": "/mod/list/-"},
        {"op": "move", "from": "/mod/list/0", "path": "/mod/first"},
    ]
    stored = kept_after(patch)
    assert stored == (
        add("/mod/first", 1),
        add("/mod/list/-", "v"),
        remove("/mod/list/0"),
        remove("/mod/map"),
        add("/mod/moved", {"k": "v"}),
    )
    assert reapplied(VALUES, stored) == apply_values_patch(VALUES, patch, root="mod")


def test_escaped_slashes_and_tildes_in_paths_are_preserved() -> None:
    patch = [add("/mod/a~1b~0c", 1), remove("/mod/map"), add("/mod/m~1", [])]
    many = [add("/mod/m~1/-", number) for number in range(MAX_IN_LIST + 1)]
    stored = kept_after(patch, many)
    assert [str(find(step, "path")) for step in stored] == ["/mod/a~1b~0c", "/mod/m~1", "/mod/map"]
    assert find_list(reapplied(VALUES, stored), "mod", "m/") == list(range(MAX_IN_LIST + 1))


def test_stored_operations_that_no_longer_apply_are_skipped() -> None:
    stored = kept_after(
        [add("/mod/map/x", 1), remove("/mod/map/k"), remove("/mod/sleep"), add("/mod/list/1", 3), remove("/mod/list/2")]
    )
    assert reapplied({"mod": {"map": {}}}, stored) == {"mod": {"map": {"x": 1}}}
    assert reapplied({"mod": {"map": 5, "list": []}}, stored) == {"mod": {"map": 5, "list": []}}
    assert reapplied({"mod": {"map": [], "list": "text"}}, stored) == {"mod": {"map": [], "list": "text"}}


def test_list_operations_are_retained_after_the_list_disappeared() -> None:
    gone: JsonObject = {"mod": {}}
    stored = [add("/mod/new", {}), add("/mod/lost/0/a", 1), add("/mod/lost/-", 2)]
    assert compacted(stored, [add("/mod/new", {})], gone) == (
        add("/mod/lost/0/a", 1),
        add("/mod/lost/-", 2),
        add("/mod/new", {}),
    )


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/mod/sleep", "value": 1},
        {"op": "add", "path": "mod", "value": 1},
        {"op": "add", "value": 1},
        {"path": "/mod/a"},
        "add",
        {"op": 1, "path": "/mod/a"},
    ],
)
def test_stored_operations_of_an_unknown_form_are_refused(operation: JsonValue) -> None:
    with pytest.raises(FormatError):
        reapplied(VALUES, [operation])
    with pytest.raises(FormatError):
        compacted([operation], [], VALUES)


@pytest.mark.parametrize(
    "operation",
    [
        remove("/mod/gone"),
        add("/mod/list/3", 1),
        add("/mod/list/00", 1),
        add("/mod/list/x", 1),
        remove("/mod/list/-"),
        add("/mod/sleep/x", 1),
        {"op": "copy", "from": "/mod/gone", "path": "/mod/a"},
    ],
)
def test_an_inapplicable_patch_is_not_stored(operation: JsonObject) -> None:
    with pytest.raises(ValuesPatchError, match=r"does not apply|the values have no /mod/gone"):
        compacted((), [operation], VALUES)


def test_number_of_stored_operations_is_limited() -> None:
    patch = [add(f"/mod/k{number}", number) for number in range(MAX_STORED)]
    stored = compacted((), patch, VALUES)
    assert len(stored) == MAX_STORED
    with pytest.raises(ValuesPatchError, match=f"more than {MAX_STORED} values"):
        compacted(stored, [add("/mod/one-more", 1)], reapplied(VALUES, stored))


def test_compacted_patches_share_no_objects_with_their_input() -> None:
    value: JsonObject = {"k": [1]}
    stored = compacted((), [add("/mod/a", value), add("/mod/a/k/-", 2)], VALUES)
    assert value == {"k": [1]}
    first, second = reapplied(VALUES, stored), reapplied(VALUES, stored)
    find_list(first, "mod", "a", "k").append(3)
    assert find_list(second, "mod", "a", "k") == [1, 2]
    assert VALUES["mod"] == {"sleep": 600, "list": [1, 2], "map": {"k": "v"}}


NAMES = st.sampled_from(["a", "b", "0", "1", "-", "a/b", "~"])
SCALARS = st.sampled_from([None, True, 0, 1, "x"])
DOCUMENTS: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


def containers(document: JsonValue, path: str) -> list[str]:
    """Return the paths of all objects and lists in the document."""
    items: list[tuple[str, JsonValue]] = []
    if isinstance(document, dict):
        items = list(document.items())
    elif isinstance(document, list):
        items = [(str(index), item) for index, item in enumerate(document)]
    else:
        return []
    inner = [containers(item, f"{path}/{key.replace('~', '~0').replace('/', '~1')}") for key, item in items]
    return [path, *(found for paths in inner for found in paths)]


def draw_path(data: st.DataObject, values: JsonObject) -> str:
    """Draw a path to a member or item of an existing object or list. The member or item itself may be missing."""
    parent = data.draw(st.sampled_from(containers(values["mod"], "/mod")))
    return f"{parent}/{data.draw(NAMES).replace('~', '~0').replace('/', '~1')}"


def draw_operation(data: st.DataObject, values: JsonObject) -> JsonObject:
    op, path = (
        data.draw(st.sampled_from(["add", "add", "add", "remove", "remove", "move", "copy"])),
        draw_path(data, values),
    )
    match op:
        case "add":
            return add(path, data.draw(DOCUMENTS))
        case "remove":
            return remove(path)
        case _:
            return {"op": op, "from": draw_path(data, values), "path": path}


@given(st.dictionaries(NAMES, DOCUMENTS, max_size=4), st.sampled_from([2, MAX_IN_LIST]), st.data())
def test_compacted_patches_give_the_same_values_as_the_original_patches(
    section: JsonObject, longest: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(values_patch, "MAX_IN_LIST", longest)
        check_law(section, data)


def check_law(section: JsonObject, data: st.DataObject) -> None:
    base: JsonObject = {"global": {}, "mod": section}
    values = base
    stored: tuple[JsonValue, ...] = ()
    for _ in range(data.draw(st.integers(1, 10))):
        patch: list[JsonValue] = []
        before = values
        for _ in range(data.draw(st.integers(1, 3))):
            operation = draw_operation(data, values)
            try:
                values = apply_values_patch(values, [operation], root="mod")
            except ValuesPatchError:
                continue
            patch.append(operation)
        stored = compacted(stored, patch, before)
        assert reapplied(base, stored) == values
        assert compacted(stored, [], values) == stored
