"""The logs and the streams of simulated Pods, which no recording of a real API server covers."""

import pytest

from tests.control_plane.support.pod_writes import backend
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.special_endpoints.endpoint import EndpointRequest
from wharfinger.control_plane.special_endpoints.pod_streams import log, proxy, stream
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject

SIMULATED: JsonObject = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "simulated", "containers": [{"name": "a"}]},
    "status": {"podIP": "10.9.0.1"},
}


def asked(below: str, name: str = "p", **query: str) -> EndpointRequest:
    view = backend(("", "pods", SIMULATED))
    values = {key: (value,) for key, value in query.items()}
    return EndpointRequest(view, builtin("", "v1", "pods"), "n", name, below, "GET", None, WriteOptions("m"), values)


def test_a_simulated_pod_has_an_empty_log_and_no_streams() -> None:
    assert log(asked("log", tailLines="5")) == ""
    with pytest.raises(StatusError, match=r"there is no kubelet .*--pod-commands"):
        stream(asked("exec", container="a"))
    with pytest.raises(StatusError, match=r"this Pod is simulated$"):
        stream(asked("attach", container="a"))
    with pytest.raises(StatusError, match="error trying to reach service"):
        proxy(asked("proxy", "p:80"))
    with pytest.raises(StatusError, match="invalid pod request"):
        proxy(asked("proxy", "ftp:p:80"))
