import pytest

from wharfinger.control_plane.api.core.services.address_validation import (
    address_errors,
    changed_address_errors,
    headless,
)
from wharfinger.formats.json.value import JsonObject, JsonValue


def service(*addresses: str, families: tuple[str, ...] = (), **spec: JsonValue) -> JsonObject:
    first = addresses[0] if addresses else ""
    return {"spec": {"clusterIP": first, "clusterIPs": list(addresses), "ipFamilies": list(families), **spec}}


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (service("10.0.0.1", families=("IPv4",)), ""),
        (service("10.0.0.1", "fd00::1", families=("IPv4", "IPv6")), ""),
        ({"spec": {"clusterIP": "10.0.0.1"}}, "spec.clusterIPs: Required value"),
        (service("10.0.0.1", clusterIP="10.0.0.2"), "first value must match `clusterIP`"),
        (service("None", "10.0.0.1"), "'None' must be the first and only value"),
        (service("10.0.0.1", "10.0.0.2"), "no more than one IP for each IP family"),
        (service("10.0.0.1", "fd00::1", "10.0.0.3"), "may only hold up to 2 values"),
        (service("10.0.0.1", families=("IPv6",)), "expected an IPv6 value as indicated by `ipFamilies[0]`"),
        (service("fd00::1", families=("IPv4",)), "expected an IPv4 value as indicated by `ipFamilies[0]`"),
        (service(families=("IPv4", "IPv4")), 'spec.ipFamilies[1]: Duplicate value: "IPv4"'),
        (service(families=("IPv5",)), 'Unsupported value: "IPv5"'),
        (service(ipFamilyPolicy="Odd"), 'spec.ipFamilyPolicy: Unsupported value: "Odd"'),
    ],
)
def test_invalid_cluster_addresses_are_refused(obj: JsonObject, said: str) -> None:
    errors = [str(error) for error in address_errors(obj, None)]

    assert not errors if not said else any(said in error for error in errors)


DUAL = service("10.0.0.1", "fd00::1", families=("IPv4", "IPv6"), ipFamilyPolicy="RequireDualStack")
SINGLE = service("10.0.0.1", families=("IPv4",), ipFamilyPolicy="SingleStack")


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (SINGLE, SINGLE, ""),
        (SINGLE, DUAL, ""),
        (DUAL, SINGLE, ""),
        (
            service("10.0.0.1", families=("IPv4",)),
            DUAL,
            "must be set to 'SingleStack' when releasing the secondary clusterIP",
        ),
        (service("10.0.0.2", families=("IPv4",)), SINGLE, "may not change once set"),
        (service("10.0.0.2", "fd00::1", families=("IPv4", "IPv6")), SINGLE, "may not change once set"),
        (service(families=()), SINGLE, "primary clusterIP can not be unset"),
        (service("10.0.0.1", families=("IPv6",)), SINGLE, "spec.ipFamilies[0]"),
        (service("None"), SINGLE, "may not change once set"),
        (service("None"), service("None"), ""),
        (service(type="ExternalName"), SINGLE, ""),
    ],
)
def test_forbidden_changes_of_cluster_addresses_are_refused(new: JsonObject, old: JsonObject, said: str) -> None:
    errors = [str(error) for error in changed_address_errors(new, old)]

    assert not errors if not said else any(said in error for error in errors)


def test_a_service_without_cluster_ip_is_headless() -> None:
    assert headless(service("None"))
    assert not headless(service())
