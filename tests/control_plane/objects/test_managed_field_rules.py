"""Validation of the names of field managers and of the entries in managedFields."""

from wharfinger.control_plane.objects.managed_field_rules import managed_fields_errors, manager_errors
from wharfinger.control_plane.wire.status import MAX_ERROR_CHARS
from wharfinger.formats.json.value import JsonValue


def test_invalid_manager_names_are_refused() -> None:
    assert manager_errors("a" * 128, "f") == []
    assert [error.message for error in manager_errors("x" * 129, "f")] == ["Too long: may not be more than 128 bytes"]
    assert [error.message for error in manager_errors("é\u0007", "f")] == [
        'Invalid value: "é\\a": invalid character U+0007 (at position 2)'
    ]


def test_the_errors_of_a_long_name_are_limited() -> None:
    said = [error.message for error in manager_errors("\u0007" * 100_000, "f")]

    assert said[0].startswith("Too long")
    assert MAX_ERROR_CHARS <= sum(map(len, said)) <= 2 * MAX_ERROR_CHARS


def test_invalid_managed_field_entries_are_reported() -> None:
    entries: list[JsonValue] = [
        {"operation": "Apply", "fieldsType": "FieldsV1", "manager": "m"},
        {"subresource": "s" * 257},
        None,
    ]

    assert [error.field for error in managed_fields_errors({"managedFields": entries})] == [
        "metadata.managedFields[1].operation",
        "metadata.managedFields[1].subresource",
        "metadata.managedFields[2].operation",
    ]
