import pytest

from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.api.core.services.allocation import PORTS, Ports, drawn, give_addresses, node_ports
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject


def service(*addresses: str, ports: tuple[int, ...] = (), check: int = 0) -> JsonObject:
    listed: list[JsonObject] = [{"nodePort": port} for port in ports]
    return {"spec": {"clusterIPs": list(addresses), "ports": list(listed), "healthCheckNodePort": check}}


def test_the_dynamic_part_of_a_range_is_used_first() -> None:
    view = FakeView()

    assert drawn(range(100), 10, set(), view) == 10
    assert drawn(range(100), 10, set(range(10, 100)), view) == 0
    assert drawn(range(100), 10, set(range(100)), view) is None


def test_a_full_address_range_is_an_error() -> None:
    taken = [service(f"10.0.0.{part}") for part in range(1, 255)]
    spec: JsonObject = {"ipFamilies": ["IPv4"]}

    with pytest.raises(StatusError, match="range is full") as refused:
        give_addresses({"metadata": {"name": "a"}, "spec": spec}, spec, FakeView({("", "services"): taken}))

    assert refused.value.code == 500


def test_the_static_part_is_used_if_the_dynamic_part_is_full() -> None:
    taken = [service(f"10.0.0.{part}") for part in range(17, 255)]
    spec: JsonObject = {"ipFamilies": ["IPv4"]}

    give_addresses({"spec": spec}, spec, FakeView({("", "services"): taken}))

    assert spec["clusterIP"] == "10.0.0.2"


def test_the_address_of_the_api_server_is_reserved() -> None:
    spec: JsonObject = {"ipFamilies": ["IPv4"], "clusterIPs": ["10.0.0.1"]}

    with pytest.raises(StatusError, match="provided IP is already allocated"):
        give_addresses({"spec": spec}, spec, FakeView())


@pytest.mark.parametrize("address", ["10.0.0.0", "10.0.0.255", "192.0.2.1"])
def test_a_dry_run_checks_the_range_only(address: str) -> None:
    spec: JsonObject = {"ipFamilies": ["IPv4"], "clusterIPs": [address]}

    with pytest.raises(StatusError, match="is not in the valid range"):
        give_addresses({"spec": spec}, spec, FakeView(dry_run=True))


def test_node_ports_are_unique_and_in_range() -> None:
    assert node_ports([service(ports=(30001, 0), check=30002)]) == {30001, 30002}
    ports = Ports(FakeView(), set(PORTS) - {30005})
    assert ports.draw() == 30005
    assert ports.take(30005) == "provided port is already allocated"
    assert "not in the valid range" in ports.take(80)
    with pytest.raises(StatusError, match="failed to allocate a nodePort"):
        ports.draw()


def test_a_dry_run_draws_ports_outside_the_range() -> None:
    ports = Ports(FakeView(dry_run=True), {30005})

    assert [ports.draw(), ports.draw()] == [32769, 32770]
    assert ports.take(30005)
    assert ports.take(80) == ""
