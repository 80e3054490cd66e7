import json

import pytest

from tests.control_plane.support.samples import NOW, definition
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.service import ControlPlane, assemble
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject, encode_json, find
from wharfinger.httpd.messages import Request, Response

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MERGE = {"content-type": "application/merge-patch+json"}


def plane(storage: MemoryStorage | None = None) -> ControlPlane:
    return assemble(storage or MemoryStorage(), lambda: NOW, None, None)


async def ask(control_plane: ControlPlane, method: str, path: str, body: JsonObject | None = None) -> Response:
    sent = b"" if body is None else encode_json(body)
    answer = await control_plane.handler(Request(method, path, {}, MERGE if method == "PATCH" else {}, sent))
    assert isinstance(answer, Response)
    return answer


async def test_each_served_version_has_an_api_service() -> None:
    control_plane = plane()
    assert (await ask(control_plane, "POST", DEFINITIONS, definition())).status == 201

    made: JsonObject = json.loads((await ask(control_plane, "GET", f"{SERVICES}/v1.example.com")).body)
    assert find(made, "metadata", "labels") == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert find(made, "spec") == {
        "group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100,
    }  # fmt: skip
    assert find(made, "status", "conditions", 0, "reason") == "Local"

    assert (await ask(control_plane, "DELETE", f"{SERVICES}/v1.example.com")).status == 200
    assert (await ask(control_plane, "GET", f"{SERVICES}/v1.example.com")).status == 200  # it was created again

    assert (await ask(control_plane, "DELETE", f"{DEFINITIONS}/widgets.example.com")).status == 200
    assert (await ask(control_plane, "GET", f"{SERVICES}/v1.example.com")).status == 404


@pytest.mark.parametrize("mark", ["true", ""])
async def test_only_automanaged_api_services_are_deleted(mark: str) -> None:
    control_plane = plane()
    await ask(control_plane, "POST", DEFINITIONS, definition())
    change: JsonObject = {"metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": mark or None}}}
    assert (await ask(control_plane, "PATCH", f"{SERVICES}/v1.example.com", change)).status == 200

    await ask(control_plane, "DELETE", f"{DEFINITIONS}/widgets.example.com")

    left = (await ask(control_plane, "GET", f"{SERVICES}/v1.example.com")).status
    assert left == (404 if mark else 200)


async def test_load_creates_api_services_of_stored_definitions() -> None:
    storage = MemoryStorage()
    control_plane = plane(storage)
    await ask(control_plane, "POST", DEFINITIONS, definition())
    storage.delete(control_plane.backend.key(_services(control_plane), "", "v1.example.com"))

    again = plane(storage)

    assert (await ask(again, "GET", f"{SERVICES}/v1.example.com")).status == 200


def _services(control_plane: ControlPlane) -> Served:
    found = control_plane.backend.catalog.find("apiregistration.k8s.io", "v1", "apiservices")
    assert found is not None
    return found
