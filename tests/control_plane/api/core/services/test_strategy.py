from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.api.core.services.strategy import create_service, update_service
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, find


def service(**spec: JsonValue) -> JsonObject:
    return {"metadata": {"name": "a", "uid": "u"}, "spec": {"type": "ClusterIP", **spec}}


def exposed(*ports: JsonObject, **spec: JsonValue) -> JsonObject:
    return service(type="NodePort", ports=[dict(port) for port in ports], **spec)


def test_two_services_have_two_addresses() -> None:
    first = create_service(service(), FakeView())
    second = create_service(service(), FakeView({("", "services"): [first]}))

    assert find(first, "spec", "clusterIP") != find(second, "spec", "clusterIP")
    assert find(second, "spec", "ipFamilies") == ["IPv4"]


def test_a_port_with_two_protocols_gets_the_same_node_port() -> None:
    found = create_service(exposed({"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}), FakeView())

    assert find(found, "spec", "ports", 0, "nodePort") == find(found, "spec", "ports", 1, "nodePort")


def test_a_port_may_request_two_node_ports() -> None:
    ports: list[JsonObject] = [{"port": 53, "nodePort": 30001}, {"port": 53, "nodePort": 30002}]
    found = create_service(exposed(*ports), FakeView())

    assert find(found, "spec", "ports", 1, "nodePort") == 30002


def test_a_service_keeps_its_allocated_values() -> None:
    old = create_service(exposed({"name": "a", "port": 1, "protocol": "TCP"}), FakeView())
    new = update_service(exposed({"name": "a", "port": 2, "protocol": "TCP"}), old, FakeView({("", "services"): [old]}))

    assert find(new, "spec", "ports", 0, "nodePort") == find(old, "spec", "ports", 0, "nodePort")
    assert find(new, "spec", "clusterIPs") == find(old, "spec", "clusterIPs")


def test_two_ports_may_not_share_a_node_port() -> None:
    old = create_service(exposed({"name": "a", "port": 1, "protocol": "TCP"}), FakeView())
    port = find(old, "spec", "ports", 0, "nodePort")
    new = exposed(
        {"name": "a", "port": 1, "protocol": "TCP", "nodePort": port},
        {"name": "b", "port": 2, "protocol": "TCP", "nodePort": port},
    )

    with pytest.raises(StatusError, match="duplicate nodePort"):
        update_service(new, old, FakeView({("", "services"): [old]}))


def test_a_health_check_port_in_use_is_refused() -> None:
    other = exposed({"port": 1, "nodePort": 30100})
    balanced = service(type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=30100, ports=[])

    with pytest.raises(StatusError, match="HealthCheck NodePort 30100"):
        create_service(balanced, FakeView({("", "services"): [other]}))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}, "multiple IP families"),
        ({"clusterIP": "fd00::1"}, "IPv6 is not configured"),
        ({"ipFamilyPolicy": "RequireDualStack"}, "not configured for dual-stack"),
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
        ({"clusterIPs": ["10.0.0.9"]}, "must be empty when `clusterIP` is not specified"),
    ],
)
def test_unavailable_ip_families_are_refused(spec: JsonObject, said: str) -> None:
    with pytest.raises(StatusError, match=said):
        create_service(service(**spec), FakeView())


def test_headless_services_without_a_selector_have_both_families() -> None:
    assert find(create_service(service(clusterIP="None"), FakeView()), "spec", "ipFamilies") == ["IPv4", "IPv6"]
    single = create_service(service(clusterIP="None", ipFamilyPolicy="SingleStack"), FakeView())
    assert find(single, "spec", "ipFamilies") == ["IPv4"]


def test_two_families_are_reduced_by_the_family_policy() -> None:
    old = service(clusterIP="None", clusterIPs=["None"], ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack")
    new = service(clusterIP="None", clusterIPs=["None"], ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="SingleStack")
    assert find(update_service(new, old, FakeView()), "spec", "ipFamilies") == ["IPv4"]

    with pytest.raises(StatusError, match="to release the secondary IP family"):
        update_service({**old, "spec": {**dict(old["spec"]), "ipFamilies": ["IPv4"]}}, old, FakeView())  # type: ignore[arg-type]


VALUES = (
    st.none() | st.booleans() | st.integers(-1, 70000) | st.text(max_size=4) | st.lists(st.text(max_size=4), max_size=2)
)


@given(
    st.dictionaries(
        st.sampled_from(["type", "clusterIP", "clusterIPs", "ipFamilies", "ports", "ipFamilyPolicy"]), VALUES
    )
)
def test_arbitrary_objects_do_not_crash(spec: dict[str, JsonValue]) -> None:
    obj: JsonObject = {"metadata": {"name": "a"}, "spec": spec}
    with suppress(StatusError):
        create_service(obj, FakeView())
    with suppress(StatusError):
        update_service(obj, obj, FakeView())
