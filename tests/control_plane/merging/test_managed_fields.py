"""managedFields after updates, compared with the recorded answers of a real API server and the rules of KEP-555."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.control_plane.recorded_answers.recorded_requests import (
    Step,
    entries,
    list_types_of,
    patches,
    reset,
    scenarios,
    steps,
)
from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.merging.managed_fields import (
    ANCIENT_MANAGER,
    MAX_UPDATE_ENTRIES,
    Manager,
    Operation,
    managers_of,
    record_update,
    updated,
    with_managers,
)
from wharfinger.control_plane.merging.strategic_merge import strategic_merge
from wharfinger.control_plane.objects.object_metadata import with_metadata, without_status
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list
from wharfinger.formats.merge_patch import merge_patch

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER: Final = NOW + timedelta(minutes=1)
CONFIG_MAP: Final = builtin_list_types("", "v1", "ConfigMap")

CREATIONS: Final = [
    step
    for scenario in scenarios()
    for step in steps(scenario)
    if step.method == "POST"
    and step.status == 201
    and find(step.request, "apiVersion") is not None
    and find(step.response, "metadata", "uid") is not None  # reviews have no uid, because they are not stored
]
MERGES: Final = list(patches("application/merge-patch+json"))
STRATEGIC: Final = list(patches("application/strategic-merge-patch+json"))

SERVERS_OWN: Final = {"32-generation-status-builtin/14", "46-crd-versions/10", "30-namespace-lifecycle-b/2"}
"""Recordings in which the API server added fields that follow from the patch (podIPs, a name label), or wrote in between."""


@pytest.mark.parametrize("step", CREATIONS, ids=str)
def test_managed_fields_agree_with_recorded_creations(step: Step) -> None:
    answer = as_object(step.response, "answer")
    custom = list_types_of(answer, step.scenario)
    created = apply_defaults(without_status(as_object(step.request, "request")))
    if answer["kind"] == "Gadget":
        created["spec"] = answer.get("spec")  # the server has already pruned unknown fields
        created.pop("other", None)
    tracked = record_update(None, created, manager="recorder", subresource="", now=NOW, lists=custom)
    assert entries(tracked) == entries(answer)


@pytest.mark.parametrize(
    ("step", "live", "answer"), [case for case in MERGES + STRATEGIC if str(case[0]) not in SERVERS_OWN], ids=str
)
def test_managed_fields_agree_with_recorded_patches(step: Step, live: JsonObject, answer: JsonObject) -> None:
    lists = list_types_of(answer, step.scenario)
    patch = as_object(step.request, "patch")
    strategic = step.content_type == "application/strategic-merge-patch+json"
    patched = strategic_merge(live, patch, lists) if strategic else as_object(merge_patch(live, patch), "patched")
    after = apply_defaults(reset(live, patched, step)) | {"apiVersion": answer["apiVersion"]}
    tracked = record_update(live, after, manager="recorder", subresource=step.subresource, now=NOW, lists=lists)
    assert entries(tracked) == entries(answer)


def test_every_format_of_patches_is_recorded() -> None:
    assert len(CREATIONS) > 20
    assert len(MERGES) > 15
    assert len(STRATEGIC) > 7


def config_map(*, managed: list[JsonValue] | None = None, **data: str) -> JsonObject:
    metadata: JsonObject = {"name": "c", "uid": "1"}
    if managed is not None:
        metadata["managedFields"] = managed
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict[str, JsonValue](data)}


def write(
    before: JsonObject | None, after: JsonObject, manager: str, now: datetime = NOW, subresource: str = ""
) -> JsonObject:
    return record_update(before, after, manager=manager, subresource=subresource, now=now, lists=CONFIG_MAP)


def with_data(obj: JsonObject, **data: str) -> JsonObject:
    return obj | {"data": dict[str, JsonValue](data)}


def fields_of(obj: JsonObject) -> dict[str, JsonValue]:
    """Return the ``fieldsV1`` of each manager of an object."""
    return {
        str(find(entry, "manager")): find(entry, "fieldsV1") for entry in find_list(obj, "metadata", "managedFields")
    }


def times_of(obj: JsonObject) -> dict[str, JsonValue]:
    return {str(find(entry, "manager")): find(entry, "time") for entry in find_list(obj, "metadata", "managedFields")}


def test_a_field_belongs_to_the_last_manager_that_changed_it() -> None:
    one = write(None, config_map(a="1", b="1"), "one")
    two = write(one, with_data(one, a="2", b="1"), "two", LATER)
    assert fields_of(two) == {"one": {"f:data": {".": {}, "f:b": {}}}, "two": {"f:data": {"f:a": {}}}}
    assert times_of(two) == {"one": "2026-01-02T03:04:05Z", "two": "2026-01-02T03:05:05Z"}


def test_a_removed_field_has_no_owner_and_no_time_changes() -> None:
    one = write(None, config_map(a="1", b="1"), "one")
    gone = write(one, with_data(one, b="1"), "two", LATER)
    assert fields_of(gone) == {"one": {"f:data": {".": {}, "f:b": {}}}}
    assert times_of(gone) == {"one": "2026-01-02T03:04:05Z"}


def test_an_update_without_changes_keeps_entries_and_times() -> None:
    one = write(None, config_map(a="1"), "one")
    assert write(one, one, "two", LATER) == one
    assert write(one, one, "one", LATER) == one


def test_each_manager_version_and_subresource_has_one_entry() -> None:
    one = write(None, config_map(a="1"), "one")
    again = write(one, with_data(one, a="1", b="2"), "one", LATER)
    assert fields_of(again) == {"one": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    other = write(again, with_data(again, a="1", b="2", c="3"), "one", LATER, "status")
    assert len(find_list(other, "metadata", "managedFields")) == 2
    assert find(other, "metadata", "managedFields", 1, "subresource") == "status"


def test_arguments_are_not_changed() -> None:
    before = config_map(a="1")
    after = config_map(a="2")
    write(None, before, "one")
    write(before, after, "one")
    assert (before, after) == (config_map(a="1"), config_map(a="2"))


def test_metadata_of_the_server_is_not_tracked() -> None:
    obj = config_map() | {"metadata": {"name": "c", "generateName": "c-", "resourceVersion": "4", "generation": 2}}
    assert fields_of(write(None, obj, "one")) == {"one": {"f:data": {}, "f:metadata": {"f:generateName": {}}}}


def test_an_object_stored_without_entries_remains_untracked() -> None:
    before = config_map(a="1")
    after = write(before, config_map(a="2"), "one")
    assert find(after, "metadata", "managedFields") is None


def test_entries_in_the_request_replace_the_stored_ones() -> None:
    one = write(None, config_map(a="1"), "one")
    said: list[JsonValue] = [
        {"manager": "q", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}}
    ]
    assert fields_of(write(one, config_map(managed=said, a="1"), "one")) == {"q": {"f:x": {}}}
    assert fields_of(write(one, config_map(managed=said, a="1"), "one", NOW, "status")) == fields_of(one)


def test_an_empty_entry_in_the_request_removes_all_entries() -> None:
    one = write(None, config_map(a="1"), "one")
    assert find(write(one, config_map(managed=[{}], a="2"), "one"), "metadata", "managedFields") is None


@pytest.mark.parametrize(
    "managed",
    [
        [],
        ["odd"],
        [{"manager": "q", "operation": "Other"}],
        [{"manager": "q", "operation": "Update", "fieldsV1": {"odd": {}}}],
        [{"manager": 1, "operation": "Update"}],
    ],
)
def test_invalid_entries_are_ignored(managed: list[JsonValue]) -> None:
    one = write(None, config_map(a="1"), "one")
    assert fields_of(write(one, config_map(managed=managed, a="1"), "one")) == fields_of(one)


def test_the_oldest_updates_are_merged() -> None:
    obj = write(None, config_map(k0="1"), "m0")
    data = {"k0": "1"}
    for number in range(1, 14):
        data[f"k{number}"] = "1"
        obj = write(obj, with_data(obj, **data), f"m{number:02}", NOW + timedelta(seconds=number))
    found = fields_of(obj)
    assert len(found) == MAX_UPDATE_ENTRIES
    assert found[ANCIENT_MANAGER] == {"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}, "f:k4": {}}}
    assert {name for name in found if name != ANCIENT_MANAGER} == {f"m{number:02}" for number in range(5, 14)}
    assert times_of(obj)[ANCIENT_MANAGER] == "2026-01-02T03:04:09Z"


def test_the_oldest_updates_are_merged_for_each_version() -> None:
    obj = write(None, config_map(k0="1"), "m0") | {"apiVersion": "v2"}
    data = {"k0": "1"}
    for number in range(1, MAX_UPDATE_ENTRIES + 1):
        data[f"k{number}"] = "1"
        obj = write(obj, with_data(obj, **data), f"m{number:02}", NOW + timedelta(seconds=number))
    found = fields_of(obj)
    assert found["m0"] == {"f:data": {".": {}, "f:k0": {}}}
    assert found[ANCIENT_MANAGER] == {"f:data": {"f:k1": {}, "f:k2": {}}}


def test_managers_are_printed_as_in_conflicts() -> None:
    assert str(Manager(Operation.APPLY, "a")) == '"a"'
    assert str(Manager(Operation.APPLY, "a", "", "status")) == '"a" with subresource "status"'
    assert str(Manager(Operation.UPDATE, "a", "apps/v1")) == '"a" using apps/v1'


def test_two_entries_of_the_same_manager_are_merged() -> None:
    entry: JsonObject = {"manager": "q", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    entry["fieldsV1"] = {"f:a": {}}
    managed: list[JsonValue] = [entry, entry | {"apiVersion": "v2", "fieldsV1": {"f:b": {}}}]
    read = managers_of(config_map(managed=managed))
    assert [owned.fields.to_fields_v1() for owned in read.values()] == [{"f:a": {}, "f:b": {}}]


_MAPS: Final = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2"]), max_size=4)
_OWNERS: Final = st.lists(st.sampled_from(["u1", "u2", "u3"]), unique=True, max_size=2)


@st.composite
def _states(draw: st.DrawFn) -> JsonObject:
    labels, data, owners = draw(_MAPS), draw(_MAPS), draw(_OWNERS)
    references: list[JsonValue] = [{"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid} for uid in owners]
    metadata: JsonObject = {"name": "c", "labels": dict[str, JsonValue](labels), "ownerReferences": references}
    present: JsonObject = {name: value for name, value in metadata.items() if value}
    return {**config_map(), "metadata": present, "data": dict[str, JsonValue](data)}


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["", "status"]), _states()), min_size=2, max_size=8))
def test_the_fast_path_gives_the_same_entries(
    writes: list[tuple[str, str, JsonObject]],
) -> None:
    (name, _, first), *others = writes
    obj = write(None, first, name)
    for number, (manager, subresource, state) in enumerate(others):
        now = NOW + timedelta(seconds=number)
        after = with_metadata(state, {"managedFields": find_list(obj, "metadata", "managedFields")})
        own = Manager(Operation.UPDATE, manager, "v1", subresource)
        expected = with_managers(after, updated(managers_of(obj), obj, after, own, now, CONFIG_MAP))
        obj = write(obj, after, manager, now, subresource)
        assert obj == expected
