"""The recorded answers of a real API server, as test cases for pure functions."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wharfinger.control_plane.kinds.type_shapes import ListTypes, builtin_list_types, crd_list_types, is_builtin
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.kube.resource import split_api_version

FOLDER = Path(__file__).with_name("recorded")


@dataclass(frozen=True)
class Step:
    """A recorded request and its answer."""

    scenario: str
    number: int
    note: str
    method: str
    path: str
    query: Mapping[str, str]
    content_type: str
    request: JsonValue
    status: int
    response: JsonValue

    def __str__(self) -> str:
        return f"{self.scenario}/{self.number}"

    @property
    def subresource(self) -> str:
        """Return ``status`` if the request is for this subresource, otherwise ""."""
        return "status" if self.path.endswith("/status") else ""

    @property
    def object_path(self) -> str:
        """Return the path of the object, without the subresource."""
        return self.path.removesuffix("/status")


@cache
def steps(scenario: str) -> tuple[Step, ...]:
    """Return the steps of a scenario file in ``recorded/``, such as ``14-apply-basic-configmap``."""
    lines = (FOLDER / f"{scenario}.jsonl").read_text().splitlines()[1:]
    return tuple(_step(scenario, json.loads(line)) for line in lines)


def scenarios() -> list[str]:
    """Return the names of all scenario files."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def _step(scenario: str, step: JsonObject) -> Step:
    request, response = find_object(step, "request"), find_object(step, "response")
    path, _, query = find_str(request, "path").partition("?")
    status, number = response["status"], step["step"]
    assert isinstance(status, int)
    assert isinstance(number, int)
    return Step(
        scenario=scenario,
        number=number,
        note=find_str(step, "note"),
        method=find_str(request, "method"),
        path=path,
        query=dict(pair.partition("=")[::2] for pair in query.split("&") if pair),
        content_type=find_str(request, "headers", "content-type"),
        request=request.get("body"),
        status=status,
        response=response.get("body"),
    )


def patches(content_type: str) -> Iterator[tuple[Step, JsonObject | None, JsonObject]]:
    """Yield each successful patch of this content type: its step, the live object before it (or None), and the answer."""
    for scenario in scenarios():
        live: dict[str, JsonObject] = {}
        for step in steps(scenario):
            if step.status not in {200, 201} or not isinstance(step.response, dict) or "kind" not in step.response:
                continue
            name = find_str(step.response, "metadata", "name")
            if step.method in {"POST", "GET"} and step.query.get("dryRun") != "All" and name:
                live[step.path if step.path.endswith(f"/{name}") else f"{step.path}/{name}"] = step.response
            elif step.method in {"PATCH", "PUT"} and not step.path.endswith(("/scale", "/finalize")):
                if step.content_type == content_type:
                    yield step, live.get(step.object_path), step.response
                if step.query.get("dryRun") != "All":
                    live[step.object_path] = step.response


def list_types_of(obj: JsonObject, scenario: str) -> ListTypes:
    """Return the list types of an object. For a custom kind, they come from the definition that the scenario creates."""
    group, version = split_api_version(find_str(obj, "apiVersion"))
    kind = find_str(obj, "kind")
    if is_builtin(group, version, kind):
        return builtin_list_types(group, version, kind)
    for step in steps(scenario):
        if find(step.request, "kind") == "CustomResourceDefinition" and find(step.request, "spec", "group") == group:
            for served in find_list(step.request, "spec", "versions"):
                if find_str(served, "name") == version:
                    return crd_list_types(find_object(served, "schema", "openAPIV3Schema"))
    raise AssertionError(f"{scenario} defines no {kind}")


def entries(obj: JsonObject) -> list[JsonObject]:
    """Return the managedFields of an object in sorted order, without their times."""
    found = [as_object(entry, "entry") | {"time": ""} for entry in find_list(obj, "metadata", "managedFields")]
    return sorted(found, key=lambda entry: json.dumps(entry, sort_keys=True))


def content(obj: JsonObject) -> JsonObject:
    """Return an object without its namespace and without the metadata that the server sets, such as managedFields and uid."""
    dropped = {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "namespace"}
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name not in dropped}
    return obj | {"metadata": metadata}


def reset(live: JsonObject, after: JsonObject, step: Step) -> JsonObject:
    """Return ``after``, but with the values of ``live`` in all fields that the endpoint of the step cannot change."""
    if step.subresource:
        return live | {"status": after.get("status"), "metadata": after["metadata"]}
    if "status" not in live or not is_builtin(*split_api_version(find_str(live, "apiVersion")), find_str(live, "kind")):
        return after
    spec = {"spec": live["spec"]} if live["kind"] == "Namespace" else {}
    return after | {"status": live["status"]} | spec
