from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.core.services.endpoints import ENDPOINTS_RULES
from wharfinger.formats.json.value import JsonObject

WRONG: JsonObject = {"subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 1, "protocol": "TCP"}]}]}


def test_unchanged_endpoints_are_not_checked() -> None:
    assert len(ENDPOINTS_RULES.create(WRONG)) == 1
    assert ENDPOINTS_RULES.update(WRONG, WRONG) == []


def test_endpoints_of_the_controller_cause_no_warnings() -> None:
    odd: JsonObject = {"subsets": [{"notReadyAddresses": [{"ip": "2001:DB8::1"}]}]}

    assert len(ENDPOINTS_RULES.warnings(odd, None)) == 1
    labels: JsonObject = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert ENDPOINTS_RULES.warnings({**odd, "metadata": {"labels": labels}}, None) == []


@given(shapes("subsets", "addresses", "ports", "ip", "hostname", "port", "name"))
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    ENDPOINTS_RULES.create(obj), ENDPOINTS_RULES.warnings(obj, None)
