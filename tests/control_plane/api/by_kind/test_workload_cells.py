import pytest

from tests.control_plane.support.samples import NOW
from wharfinger.control_plane.api.by_kind import workload_cells as work
from wharfinger.control_plane.api.common.cells import Cell
from wharfinger.formats.json.value import JsonObject, JsonValue


def condition(type_: str) -> JsonObject:
    return {"status": {"conditions": [{"type": type_, "status": "True"}]}}


def metric(type_: str, name: str, target: JsonObject, current: JsonObject | None = None) -> JsonObject:
    spec: JsonValue = [{"type": type_, name: {"name": "cpu", "target": target}}]
    status: JsonObject = {} if current is None else {"currentMetrics": [{"type": type_, name: {"current": current}}]}
    return {"spec": {"metrics": spec}, "status": status}


@pytest.mark.parametrize(
    ("cell", "obj", "shown"),
    [
        (work.job_status, condition("Complete"), "Complete"),
        (work.job_status, condition("Failed"), "Failed"),
        (work.job_status, condition("Suspended"), "Suspended"),
        (work.job_status, {}, "Running"),
        (work.job_status, {"metadata": {"deletionTimestamp": "t"}}, "Terminating"),
        (work.job_completions, {"spec": {"completions": 3}, "status": {"succeeded": 1}}, "1/3"),
        (work.job_completions, {"spec": {"parallelism": 2}}, "0/1 of 2"),
        (work.job_completions, {}, "0/1"),
        (work.job_duration, {}, ""),
        (work.job_duration, {"status": {"startTime": "2026-11-21T03:59:00Z"}}, "60s"),
        (
            work.job_duration,
            {"status": {"startTime": "2026-11-21T03:50:00Z", "completionTime": "2026-11-21T03:50:07Z"}},
            "7s",
        ),
        (work.cron_suspended, {"spec": {"suspend": True}}, "True"),
        (work.cron_suspended, {}, "<unset>"),
        (work.cron_last, {}, "<none>"),
        (work.cron_last, {"status": {"lastScheduleTime": "2026-11-21T03:58:00Z"}}, "2m"),
        (work.controller, {}, "<none>"),
        (
            work.controller,
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}]}},
            "pod/p",
        ),
        (work.scale_target, {"spec": {"scaleTargetRef": {"kind": "D", "name": "w"}}}, "D/w"),
        (work.metrics, {}, "<none>"),
        (
            work.metrics,
            {"apiVersion": "autoscaling/v1", "spec": {"targetCPUUtilizationPercentage": 80}},
            "cpu: <unknown>/80%",
        ),
        (work.metrics, metric("Resource", "resource", {"averageUtilization": 80}), "cpu: <unknown>/80%"),
        (work.metrics, metric("Resource", "resource", {}, {"averageUtilization": 7}), "cpu: 7%/<auto>"),
        (work.metrics, metric("Resource", "resource", {"averageValue": "1"}, {"averageValue": "2"}), "cpu: 2/1"),
        (work.metrics, metric("Pods", "pods", {"averageValue": "5"}, {"averageValue": "2"}), "2/5"),
        (work.metrics, metric("Object", "object", {"value": "5"}), "<unknown>/5"),
        (work.metrics, metric("External", "external", {"averageValue": "5"}), "<unknown>/5 (avg)"),
        (work.metrics, {"spec": {"metrics": [{}, {}, {}]}}, "<unknown type>, <unknown type> + 1 more..."),
    ],
)
def test_cells_of_columns_are_formatted(cell: Cell, obj: JsonObject, shown: JsonValue) -> None:
    assert cell(obj, NOW) == shown
