"""The sums of the resources that the containers of a Pod request."""

from wharfinger.control_plane.api.core.pod_specs.amounts import container_amounts
from wharfinger.formats.json.value import JsonObject


def container(cpu: str, *, sidecar: bool = False) -> JsonObject:
    more: JsonObject = {"restartPolicy": "Always"} if sidecar else {}
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_amounts_of_containers_are_summed() -> None:
    spec: JsonObject = {"containers": [container("100m"), container("0.2")]}
    assert container_amounts(spec, "requests").text("cpu") == "300m"


def test_init_containers_may_need_more_than_containers() -> None:
    spec: JsonObject = {
        "containers": [container("100m")],
        "initContainers": [container("50m", sidecar=True), container("1"), container("10m", sidecar=True)],
    }
    amounts = container_amounts(spec, "requests")
    assert amounts.text("cpu") == "1050m"
    assert amounts.copy() == amounts
    assert container_amounts({}, "limits").numbers == {}
