import pytest
from hypothesis import given

from tests.control_plane.support.requests_made import request
from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.certificates.certificate_requests import (
    CERTIFICATE_REQUEST_RULES,
    certificate_problem,
    organizations,
    parsed_request,
    request_errors,
    signer_name_errors,
)
from wharfinger.control_plane.api.core.secrets import decoded
from wharfinger.formats.json.value import JsonObject, JsonValue

RULES = CERTIFICATE_REQUEST_RULES["CertificateSigningRequest.certificates.k8s.io"]


def asked(*conditions: JsonObject, certificate: str = "", **spec: JsonValue) -> JsonObject:
    good: JsonObject = {"request": request(), "signerName": "a.b/c", "usages": ["any"]}
    return {"spec": {**good, **spec}, "status": {"conditions": [*conditions], "certificate": certificate}}


APPROVED: JsonObject = {"type": "Approved", "status": "True"}


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        (asked(), []),
        (asked(usages=["any", "any", "odd"]), ["spec.usages[2]", "spec.usages[1]"]),
        (asked(usages=[]), ["spec.usages"]),
        (asked(expirationSeconds=599), ["spec.expirationSeconds"]),
        (asked(signerName="kubernetes.io/legacy-unknown"), ["spec.signerName"]),
        (asked(request="eA=="), ["spec.request"]),
        (asked(certificate="eA=="), ["status.certificate"]),
    ],
)
def test_invalid_fields_of_new_requests_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in request_errors(one)] == fields


@pytest.mark.parametrize(
    "old", [asked(usages=["odd", "odd"]), asked(signerName="kubernetes.io/legacy-unknown"), asked(certificate="eA==")]
)
def test_old_violations_are_tolerated(old: JsonObject) -> None:
    assert request_errors(old, old) == []


@pytest.mark.parametrize(
    ("name", "count"),
    [("a.b/c", 0), ("", 1), ("a", 1), ("a/b/c", 1), ("a/b", 1), ("a.-/B", 2), ("a." * 130 + "a/b", 1)],
)
def test_invalid_signer_names_are_refused(name: str, count: int) -> None:
    assert len({error.message for error in signer_name_errors(name, "f")}) >= count
    assert bool(signer_name_errors(name, "f")) == bool(count)


@pytest.mark.parametrize(
    ("way", "new", "old", "said"),
    [
        ("approval", asked(APPROVED), asked(), ""),
        ("status", asked(APPROVED), asked(), 'updates may not add a condition of type "Approved"'),
        ("approval", asked(), asked(APPROVED), 'updates may not remove a condition of type "Approved"'),
        ("approval", asked(APPROVED, {"type": "Denied", "status": "True"}), asked(), "mutually exclusive"),
        ("approval", asked(certificate="eA=="), asked(), "must contain at least one CERTIFICATE PEM block"),
        ("status", asked(certificate="eQ=="), asked(certificate="eA=="), "may not modify existing certificate content"),
    ],
)
def test_forbidden_changes_of_conditions_are_refused(way: str, new: JsonObject, old: JsonObject, said: str) -> None:
    judge = RULES.status if way == "status" else RULES.subresources[way]
    errors = [str(error) for error in judge(new, old)]

    assert not errors if not said else said in errors[0]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", ""),
        (b"-----BEGIN X-----\n-----END X-----", 'only CERTIFICATE PEM blocks are allowed, found "X"'),
        (b"-----BEGIN CERTIFICATE-----\na: b\n-----END CERTIFICATE-----", "no PEM block headers are permitted"),
        (b"-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----", "x509: malformed certificate"),
    ],
)
def test_invalid_certificates_are_refused(data: bytes, said: str) -> None:
    assert certificate_problem(data) == said


def test_organizations_of_a_request_are_read() -> None:
    assert organizations(decoded(request("g"))) == ["g"]
    with pytest.raises(ValueError, match="malformed"):
        organizations(b"-----BEGIN CERTIFICATE REQUEST-----\neA==\n-----END CERTIFICATE REQUEST-----")


NAMES = ("spec", "request", "usages", "signerName", "status", "conditions", "type", "certificate")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.subresources["approval"](new, old)


def test_pem_blocks_without_an_end_are_found_in_linear_time() -> None:
    with pytest.raises(ValueError, match="PEM block type must be CERTIFICATE REQUEST"):
        parsed_request(b"-----BEGIN A-----\n" * 100_000)
    with pytest.raises(ValueError, match="PEM block type must be CERTIFICATE REQUEST"):
        parsed_request(b"".join(b"-----BEGIN A%d-----\n" % number for number in range(100_000)))
