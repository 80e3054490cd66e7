"""The options of the admission server, and the configuration that API servers get."""

import base64

import pytest

from wharfinger.formats.json.value import find, find_list
from wharfinger.runtime.admission.endpoint import (
    AdmissionAddressError,
    Endpoint,
    endpoint_slice,
    read_endpoint,
    webhook_configuration,
)


@pytest.mark.parametrize(
    ("address", "service", "endpoint", "names"),
    [
        ("10.0.0.5:9443", "", Endpoint("10.0.0.5", 9443), ("10.0.0.5",)),
        ("[::1]:0", "", Endpoint("::1", 0), ("::1",)),
        ("host.example:1", "", Endpoint("host.example", 1), ("host.example",)),
        (":9443", "system/hook", Endpoint("", 9443, ("system", "hook")),
         ("hook.system.svc", "hook.system.svc.cluster.local")),
    ],
)  # fmt: skip
def test_listen_addresses_and_services_are_read(
    address: str, service: str, endpoint: Endpoint, names: tuple[str, ...]
) -> None:
    assert read_endpoint(address, service) == endpoint
    assert endpoint.names == names


@pytest.mark.parametrize(
    ("address", "service", "message"),
    [
        ("9443", "", "expected HOST:PORT"),
        ("a:b", "", "expected HOST:PORT"),
        ("a:99999", "", "expected a port up to 65535"),
        (":9443", "", "expected the host by which API servers reach this machine"),
        (":9443", "hook", "expected NAMESPACE/NAME of a Service"),
    ],
)
def test_wrong_addresses_are_refused_with_a_remedy(address: str, service: str, message: str) -> None:
    with pytest.raises(AdmissionAddressError, match=message):
        read_endpoint(address, service)


def test_the_endpoint_slice_contains_only_this_pod() -> None:
    assert endpoint_slice(Endpoint("", 9443, ("system", "hook")), 9443) is None
    for address, kind in (("10.0.0.7", "IPv4"), ("fd00::7", "IPv6")):
        made = endpoint_slice(read_endpoint(":0", "system/hook", address), 4711)
        assert find(made, "addressType") == kind
        assert find(made, "endpoints", 0, "addresses") == [address]
        assert find(made, "ports", 0, "port") == 4711
        assert find(made, "metadata", "labels", "kubernetes.io/service-name") == "hook"


def test_the_configuration_never_blocks_the_cluster() -> None:
    made = webhook_configuration(Endpoint("::1", 0), 4711, "CA")
    (webhook,) = find_list(made, "webhooks")
    assert find(webhook, "failurePolicy") == "Ignore"
    assert find(webhook, "timeoutSeconds") == 3
    assert find(webhook, "sideEffects") == "None"
    assert find(webhook, "clientConfig") == {
        "caBundle": base64.b64encode(b"CA").decode(),
        "url": "https://[::1]:4711/validate",
    }
    behind = webhook_configuration(Endpoint("", 9443, ("system", "hook")), 9443, "CA")
    (webhook,) = find_list(behind, "webhooks")
    service = {"namespace": "system", "name": "hook", "port": 443, "path": "/validate"}
    assert find(webhook, "clientConfig", "service") == service
    assert find(webhook, "clientConfig", "url") is None
