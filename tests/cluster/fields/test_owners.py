"""The owners of fields, read from managedFields."""

import pytest

from wharfinger.cluster.fields.owners import NOBODY, Writer, below, has_other_writers, own_entry, read_owners
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.field_sets import EMPTY, FieldSet


def entry(manager: str, fields: JsonValue, operation: str = "Update", time: str = "1", sub: str = "") -> JsonObject:
    said: JsonObject = {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields}
    return said | ({"subresource": sub} if sub else {})


def live(*entries: JsonValue) -> JsonObject:
    return {"metadata": {"managedFields": list(entries)}}


A: JsonObject = {"f:a": {}}
B: JsonObject = {"f:b": {"f:c": {}}}


def test_fields_are_split_into_applied_updated_and_foreign() -> None:
    owners = read_owners(
        live(entry("us", A, "Apply"), entry("us", B), entry("us", {"f:d": {}}, "Apply", sub="status"), entry("ed", B)),
        "us",
    )

    assert owners is not None
    assert owners.own == FieldSet.of_paths([("f:a",)])
    assert owners.own_updates == FieldSet.of_paths([("f:b", "f:c"), ("f:d",)])
    assert list(owners.sets_of_others()) == [(Writer("ed"), FieldSet.of_paths([("f:b", "f:c")]))]


def test_a_manager_of_the_status_only_is_not_another_writer() -> None:
    assert not has_other_writers(live(entry("us", A, "Apply"), entry("us", B), entry("manager", B, sub="status")), "us")
    assert has_other_writers(live(entry("us", A, "Apply"), "odd"), "us"), "an unreadable entry counts as another writer"
    assert has_other_writers(live(entry("us", A, "Apply"), entry("hpa", B, sub="scale")), "us")
    assert has_other_writers(live(entry("helm", A)), "us")
    assert not has_other_writers({}, "us")


def test_the_latest_of_several_writers_is_named() -> None:
    owners = read_owners(live(entry("al", B, time="1"), entry("ed", B, time="2", sub="scale"), entry("zed", A)), "us")

    assert owners is not None
    assert owners.writer_of(("f:b", "f:c")) == Writer("ed", "scale")
    assert owners.writer_of(("f:b",)) == Writer("ed", "scale"), "a field inside of it has a writer"
    assert owners.writer_of(("f:b", "f:c", "f:d")) == NOBODY


def test_the_owner_of_a_field_is_named_before_a_later_writer_inside_it() -> None:
    whole: JsonObject = {"f:b": {".": {}}}
    owners = read_owners(live(entry("al", whole, time="1"), entry("ed", B, time="2")), "us")

    assert owners is not None
    assert owners.writer_of(("f:b",)) == Writer("al")


def test_fields_owned_as_a_whole_by_another_manager_are_found() -> None:
    owners = read_owners(live(entry("al", {"f:a": {}, "f:b": {".": {}, "f:c": {}}}), entry("ed", {"f:e": {}})), "us")

    assert owners is not None
    assert [owners.has_other_whole_owner((f"f:{name}",)) for name in "abe"] == [True, False, True]


def test_unreadable_entries_are_skipped_or_make_ownership_unknown() -> None:
    theirs: tuple[JsonValue, ...] = (
        entry("ed", {"odd": {}}),
        entry("ed", A, time="2") | {"subresource": 5},
        "text",
        {"manager": 5},
    )
    owners = read_owners(live(*theirs), "us")
    assert owners is not None
    assert (owners.own, owners.others) == (EMPTY, ())

    assert read_owners(live(entry("us", {"odd": {}}, "Apply")), "us") is None
    assert read_owners(live(entry("us", None)), "us") is None


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {}}, live("text", entry("us", A)), live()])
def test_objects_without_our_entry_have_no_own_entry(obj: JsonObject) -> None:
    assert own_entry(obj, "us") is None


def test_our_own_entry_is_found() -> None:
    applied = entry("us", A, "Apply")

    assert own_entry(live(entry("us", B), entry("us", B, "Apply", sub="status"), applied), "us") is applied


def test_fields_below_a_path_are_selected() -> None:
    fields = FieldSet.of_paths([("f:b", "f:c")])

    assert (below(fields, ("f:b",)), below(fields, ("f:x", "f:y"))) == (FieldSet.of_paths([("f:c",)]), EMPTY)
