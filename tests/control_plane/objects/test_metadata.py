from dataclasses import replace

from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.objects.metadata import (
    METADATA,
    annotation_errors,
    created_errors,
    finalizer_warnings,
    updated_errors,
)
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.selectors import key_problems

CONFIG = builtin("", "v1", "configmaps").kind
NODE = builtin("", "v1", "nodes").kind


def named(**metadata: object) -> JsonObject:
    return {"metadata": {"name": "a", "namespace": "n", **metadata}}  # type: ignore[dict-item]


def test_orders_of_rules_have_only_known_letters() -> None:
    for rules in METADATA.values():
        assert set(rules.create + rules.update + rules.status) <= set("MUO")


def test_errors_of_the_kind_hide_errors_of_the_store() -> None:
    errors = created_errors(CONFIG, {"metadata": {"name": "A_", "namespace": "n"}}, list)

    assert [error.field for error in errors] == ["metadata.name"]


def test_each_layer_reports_its_errors() -> None:
    wrong = named(labels={"a": "x y"})

    assert len(updated_errors(CONFIG, wrong, named(), "UO", list)) == 3
    assert len(updated_errors(CONFIG, wrong, named(), "MUO", list)) == 4
    assert updated_errors(CONFIG, named(), named(), "MUO", list) == []


def test_stored_metadata_is_checked_again_on_update() -> None:
    pod = builtin("", "v1", "pods").kind
    cron_job = builtin("batch", "v1", "cronjobs").kind
    bound, held, prefixed = named(labels={"a": "x y"}), named(finalizers=["foo"]), named(generateName="BAD_x")

    assert updated_errors(pod, bound, bound, "UMO", list)
    assert updated_errors(cron_job, held, held, "UO", list)
    assert updated_errors(CONFIG, prefixed, prefixed, "MUO", list)


def test_objects_have_a_namespace_only_if_namespaced() -> None:
    assert [error.message for error in created_errors(NODE, named(), list)] == ["Forbidden: not allowed on this type"]
    assert [error.field for error in created_errors(CONFIG, {"metadata": {"name": "a"}}, list)] == [
        "metadata.namespace"
    ]


def test_annotations_over_the_size_limit_are_refused() -> None:
    assert annotation_errors({"a": "x" * 262_145}, "f")[0].message == "Too long: may not be more than 262144 bytes"
    assert key_problems("a/b/c")[0].startswith("a valid label key must consist")


def test_invalid_managed_fields_are_reported() -> None:
    entry: JsonObject = {"operation": "Apply", "fieldsType": "FieldsV1", "subresource": "s" * 257}
    errors = created_errors(CONFIG, named(managedFields=[entry]), list)

    assert [error.field for error in errors] == ["metadata.managedFields[0].subresource"]


def test_finalizer_names_of_custom_objects_are_checked() -> None:
    custom = replace(CONFIG, custom=True)

    assert created_errors(custom, named(finalizers=["plain"]), list) == []
    assert finalizer_warnings(named(finalizers=["a.b/c", "kubernetes"]), None) == []
    assert len(finalizer_warnings(named(finalizers=["a b"]), None)) == 2
    assert finalizer_warnings(named(finalizers=["plain"]), named(finalizers=["plain"])) == []
