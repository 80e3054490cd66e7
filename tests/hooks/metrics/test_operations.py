"""The operations that hooks write into METRICS_PATH."""

import json
import re

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.metrics.operations import (
    MAX_BUCKETS,
    Add,
    Expire,
    MetricOperation,
    Observe,
    Set,
    Unknown,
    read_metric_operations,
)
from wharfinger.hooks.running.results import METRICS, read_metrics


def read(*documents: JsonValue) -> tuple[MetricOperation, ...]:
    """Return the operations that are read from a metrics file with these documents."""
    data = "\n".join(json.dumps(document) for document in documents).encode()
    return read_metric_operations(read_metrics(data, hook="h"), hook="h")


def test_operations_of_the_contract_example_are_read() -> None:
    assert read(
        {"name": "hook_metric", "action": "set", "value": 33, "labels": {"kind": "pod"}},
        {"name": "runs_total", "action": "add", "value": 1, "labels": {}},
        {"name": "dur", "action": "observe", "value": 0.3, "buckets": [0.1, 0.5, 1], "labels": {}},
        {"group": "g1", "action": "expire"},
        {"group": "g1", "name": "items", "action": "set", "value": 2, "labels": {"ns": "a"}},
    ) == (
        Set("", "hook_metric", {"kind": "pod"}, 33),
        Add("", "runs_total", {}, 1),
        Observe("", "dur", {}, 0.3, (0.1, 0.5, 1)),
        Expire("g1"),
        Set("g1", "items", {"ns": "a"}, 2),
    )


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({"name": "a", "add": 2}, Add("", "a", {}, 2)),
        ({"name": "a", "set": 0}, Set("", "a", {}, 0)),
        ({"name": "a", "set": 1.5, "action": "add", "value": 9}, Set("", "a", {}, 1.5)),
        ({"name": "a", "add": None, "set": 1}, Set("", "a", {}, 1)),
        ({"name": "a", "action": "set", "value": -3, "labels": None, "group": None, "more": [1]}, Set("", "a", {}, -3)),
        ({"name": "a", "set": 1, "labels": {"b": None}}, Set("", "a", {"b": ""}, 1)),
        ({"name": "a", "set": 2**70}, Set("", "a", {}, float(2**70))),
        ({"action": "expire"}, Expire("")),
        ({"action": "expire", "name": "a", "group": "g"}, Expire("g")),
        (
            {"group": "g", "name": "a", "action": "observe", "value": 1, "buckets": [2, 1.0, 1]},
            Observe("g", "a", {}, 1, (1, 2)),
        ),
        ({"name": "no-name.at all", "set": 1, "labels": {"": "x"}}, Set("", "no-name.at all", {"": "x"}, 1)),
    ],
)
def test_each_form_of_an_operation_is_read(document: JsonValue, operation: MetricOperation) -> None:
    assert read(document) == (operation,)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"name": "a", "value": 1}, r"document 1 \('a'\): no action; expected one of add, set, observe, expire"),
        ({"name": "a", "action": "reset"}, r"document 1 \('a'\): unknown action 'reset'"),
        ({"action": "Set"}, "document 1: unknown action 'Set'"),
        ({}, "document 1: no action"),
        ({"action": "x" * 100}, "document 1: unknown action 'x{60}';"),
    ],
)
def test_an_unknown_action_is_dropped(document: JsonValue, why: str) -> None:
    (operation,) = read(document)
    assert isinstance(operation, Unknown)
    assert re.match(why, operation.why)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"action": "set", "value": 1}, "name: required for set"),
        ({"action": "add", "name": "", "value": 1}, "name: required for add"),
        ({"action": "set", "name": "a"}, r"\('a'\): value: required for set"),
        ({"action": "add", "name": "a", "value": None}, "value: required for add"),
        ({"action": "observe", "name": "a", "buckets": [1]}, "value: required for observe"),
        ({"action": "observe", "name": "a", "value": 1}, "buckets: at least one is required for observe"),
        ({"action": "observe", "name": "a", "value": 1, "buckets": []}, "buckets: at least one is required"),
        (
            {"action": "observe", "name": "a", "value": 1, "buckets": ["1"]},
            r"buckets\[0\]: expected a number, found a string",
        ),
        (
            {"action": "observe", "name": "a", "value": 1, "buckets": [1, None]},
            r"buckets\[1\]: expected a number, found null",
        ),
        ({"action": "observe", "name": "a", "value": 1, "buckets": 1}, "buckets: expected a list"),
        ({"name": "a", "set": 1, "buckets": [0] * (MAX_BUCKETS + 1)}, f"buckets: {MAX_BUCKETS + 1} is over the limit"),
        ({"name": "a", "add": 1, "set": 1}, "'add' and 'set' exclude each other"),
        ({"name": "a", "set": "1"}, "set: expected a number, found a string"),
        ({"name": "a", "action": "set", "value": True}, "value: expected a number, found a boolean"),
        ({"name": "a", "set": 10**400}, "set: the number is out of range"),
        ({"name": 1, "set": 1}, "name: expected a string, found an integer"),
        ({"name": "a", "action": 1}, "action: expected a string"),
        ({"name": "a", "group": [], "set": 1}, "group: expected a string"),
        ({"name": "a", "set": 1, "labels": []}, "labels: expected an object"),
        ({"name": "a", "set": 1, "labels": {"b": 1}}, "labels.b: expected a string, found an integer"),
    ],
)
def test_invalid_operations_fail_the_run(document: JsonValue, why: str) -> None:
    with pytest.raises(HookError, match=f"hook h: {METRICS}: got bad metrics: document 1.*{why}") as caught:
        read(document, {"name": "b", "set": 1})
    assert (caught.value.file, caught.value.transient) == (METRICS, False)


def test_errors_name_the_document_number_without_label_values() -> None:
    with pytest.raises(HookError, match=r"document 2 \('b'\)") as caught:
        read({"name": "a", "set": 1}, {"name": "b", "set": "hunter2", "labels": {"password": "hunter2"}})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(HookError, match="document 1: the operation: expected an object"):
        read_metric_operations([[]], hook="h")
