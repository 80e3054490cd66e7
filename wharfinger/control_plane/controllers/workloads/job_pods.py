"""The Pods of a Job, indexed or not, and the short form of completion indexes (``0-2,5``)."""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.control_plane.controllers.framework.objects import (
    annotation,
    labels_of,
    name_of,
    number_in,
    with_fields,
)
from wharfinger.control_plane.controllers.workloads.pod_making import pod_of_template
from wharfinger.formats.json.value import JsonObject, JsonValue, find_int, find_list, find_object, find_str

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_MOST: Final = 100_000
"""The highest completion index that is considered. It is the limit that Kubernetes sets for an Indexed Job."""


def job_pod(job: JsonObject, index: int | None) -> JsonObject:
    """Return a Pod of a Job; ``index`` is its completion index in an Indexed Job."""
    pod = pod_of_template(job, find_object(job, "spec", "template"))
    finalizers: list[JsonValue] = [*find_list(pod, "metadata", "finalizers"), FINALIZER]
    pod = with_fields(pod, finalizers=finalizers)
    if index is None:
        return pod
    spec = find_object(pod, "spec")
    variable: JsonObject = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    containers: list[JsonValue] = [
        {**one, "env": [*find_list(one, "env"), variable]} if isinstance(one, dict) else one
        for one in find_list(spec, "containers")
    ]
    spec = spec | {"containers": containers, "hostname": f"{name_of(job)}-{index}"}
    annotations = find_object(pod, "metadata", "annotations") | {INDEX: str(index)}
    return with_fields(
        {**pod, "spec": spec},
        generateName=f"{name_of(job)}-{index}-",
        labels=labels_of(pod) | {INDEX: str(index)},
        annotations=annotations,
    )


def index_of(pod: JsonObject) -> int:
    """Return the completion index of a Pod, or -1."""
    index = number_in(annotation(pod, INDEX))
    return -1 if index is None else index


def completed_indexes(obj: JsonObject) -> set[int]:
    """Return the completed indexes in a Job's status."""
    found: set[int] = set()
    for item in find_str(obj, "status", "completedIndexes").split(","):
        first, _, last = item.partition("-")
        if item.isascii() and first.isdigit() and (not last or last.isdigit()) and len(item) < 20:
            found.update(range(int(first), min(int(last or first), _MOST) + 1))
    return found


def format_indexes(indexes: set[int]) -> str:
    """Format indexes in their short form: ``0-2,5``."""
    parts: list[str] = []
    ordered = sorted(index for index in indexes if index >= 0)
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        parts.append(str(ordered[start]) if start == end else f"{ordered[start]}-{ordered[end]}")
        start = end + 1
    return ",".join(parts)


def wanted_indexes(job: JsonObject, status: JsonObject, active: Sequence[JsonObject]) -> Iterator[int]:
    """Return the indexes that are neither completed nor running, lowest first."""
    taken = completed_indexes({"status": status}) | {index_of(pod) for pod in active}
    completions = min(find_int(job, "spec", "completions"), _MOST)
    return (index for index in range(completions) if index not in taken)
