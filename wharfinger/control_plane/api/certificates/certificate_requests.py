"""The validation of CertificateSigningRequests (certificates.k8s.io/v1). The requests are stored and can be approved, but are
never signed.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from wharfinger.control_plane.api.core.secrets import decoded
from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import parts, repeated, texts
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    quoted,
    required,
    too_long,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
SHORTEST: Final = 600
DOMAIN_LIMIT: Final = 253
SIGNER_LIMIT: Final = 253 + 253 + 63 + 1 + 1
LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
APPROVALS: Final = ("Approved", "Denied")
_LASTING: Final = (*APPROVALS, "Failed")
_STATUSES: Final = ("False", "True", "Unknown")
_BEGIN: Final = re.compile(rb"-----BEGIN ([^\r\n-]+)-----")
_MAX_ENDLESS: Final = 100
"""The maximum number of types of PEM blocks without an END line. If a text has more, no further block in it is found."""
_REQUEST: Final = "CERTIFICATE REQUEST"


def _blocks(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the type, content and full text of each PEM block, in linear time.

    If the END lines of more than ``_MAX_ENDLESS`` types are missing, no further block is found.
    """
    endless: set[bytes] = set()
    at = 0
    while (begin := _BEGIN.search(data, at)) is not None:
        at, kind = begin.end(), begin[1]
        mark = b"-----END %b-----" % kind
        end = -1 if kind in endless or len(endless) > _MAX_ENDLESS else data.find(mark, at)
        if end < 0:
            endless.add(kind)
            continue
        yield kind, data[at:end], data[begin.start() : end + len(mark)]
        at = end + len(mark)


def parsed_request(data: bytes) -> x509.CertificateSigningRequest:
    """Parse a certificate request in PEM. Raises ValueError with the message of kube-apiserver."""
    kind, _, block = next(_blocks(data), (b"", b"", b""))
    if kind != _REQUEST.encode():
        raise ValueError(f"PEM block type must be {_REQUEST}")
    try:
        return x509.load_pem_x509_csr(block)
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm) as error:
        raise ValueError("asn1: structure error: malformed certificate request") from error


def organizations(data: bytes) -> list[str]:
    """Return the organizations (groups) in the subject of a certificate request. Raises ValueError."""
    names = parsed_request(data).subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return [str(name.value) for name in names]


def request_errors(request: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """Return the errors of a CertificateSigningRequest; faults that ``old`` already had are allowed."""
    errors = _pem_errors(find(request, "spec", "request"))
    usages, before = texts(request, "spec", "usages"), texts(old, "spec", "usages")
    errors += [] if usages else [required("spec.usages")]
    if set(before) <= set(USAGES):
        errors += [
            not_supported(f"spec.usages[{index}]", usage, USAGES)
            for index, usage in enumerate(usages)
            if usage not in USAGES
        ]
    if len(before) == len(set(before)):
        errors += [duplicate(f"spec.usages[{index}]", usages[index]) for index in sorted(repeated(usages))]
    signer, seconds = text(request, "spec", "signerName"), optional_number(request, "spec", "expirationSeconds")
    if signer == LEGACY_SIGNER and text(old, "spec", "signerName") != LEGACY_SIGNER:
        errors.append(invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        errors += signer_name_errors(signer, "spec.signerName")
    if seconds is not None and seconds < SHORTEST:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, why))
    errors += _condition_errors(parts(request, "status", "conditions"), parts(old, "status", "conditions"))
    given, had = (decoded(find(one, "status", "certificate")) for one in (request, old))
    if (old is None or given != had) and not (old is not None and certificate_problem(had)):
        problem = certificate_problem(given)
        errors += [invalid("status.certificate", "<certificate data>", problem)] if problem else []
    return errors


def _pem_errors(encoded: JsonValue) -> list[FieldError]:
    try:
        valid = parsed_request(decoded(encoded)).is_signature_valid
    except (ValueError, UnsupportedAlgorithm) as error:
        return [invalid("spec.request", encoded, str(error))]
    return [] if valid else [invalid("spec.request", encoded, "x509: ECDSA verification failure")]


def signer_name_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of a signer's name: a domain and a path."""
    if not name:
        return [required(field)]
    if name.count("/") != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(field, name, why)]
    domain, path = name.split("/")
    errors = [too_long(field, DOMAIN_LIMIT)] if len(domain) > DOMAIN_LIMIT else []
    errors += _label_errors(domain, field, dns_label_problems)
    if "." not in domain:
        errors.append(invalid(field, domain, "should be a domain with at least two segments separated by dots"))
    errors += _label_errors(path, field, subdomain_problems)
    return [*errors, too_long(field, SIGNER_LIMIT)] if len(name) > SIGNER_LIMIT else errors


def _label_errors(name: str, field: str, problems: Callable[[str], list[str]]) -> list[FieldError]:
    """Return the errors of the first invalid label."""
    for label in name.split("."):
        if found := problems(label):
            return [invalid(field, name, f"validating label {quoted(label)}: {problem}") for problem in found]
    return []


def _condition_errors(conditions: list[JsonObject], before: list[JsonObject]) -> list[FieldError]:
    errors: list[FieldError] = []
    old = [text(item, "type") for item in before]
    kinds = [text(item, "type") for item in conditions]
    twice, ratified = repeated(kinds), set(APPROVALS) <= set(old)
    once = len(old) == len(set(old))
    first = {kind: index for index, kind in reversed([*enumerate(kinds)])}
    for index, condition in enumerate(conditions):
        path, kind, status = f"status.conditions[{index}]", kinds[index], text(condition, "status")
        if not kind and "" not in old:
            errors.append(required(f"{path}.type"))
        allowed = ("True",) if kind in _LASTING else _STATUSES
        if not status:
            errors.append(required(f"{path}.status"))
        elif status not in allowed:
            errors.append(not_supported(f"{path}.status", status, allowed))
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other is not None and first.get(other, index) < index and not ratified:
            why = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid("status.conditions", kind, why))
        if index in twice and once:
            errors.append(duplicate(f"{path}.type", kind))
    return errors


def certificate_problem(data: bytes) -> str:
    """Return the reason why an issued certificate (PEM) is invalid; "" if it is valid or absent."""
    if not data:
        return ""
    blocks = list(_blocks(data))
    if not blocks:
        return "must contain at least one CERTIFICATE PEM block"
    for kind, inside, block in blocks:
        if kind != b"CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {quoted(kind.decode(errors='replace'))}"
        if b":" in inside:
            return "no PEM block headers are permitted"
        try:
            x509.load_pem_x509_certificate(block)
        except (ValueError, x509.InvalidVersion):
            return "x509: malformed certificate"
    return ""


def _changed(request: JsonObject, old: JsonObject, *, approves: bool = False, signs: bool = False) -> list[FieldError]:
    errors = request_errors(request, old)
    before, after = ([text(item, "type") for item in parts(one, "status", "conditions")] for one in (old, request))
    field = "status.conditions"
    errors += [
        forbidden(field, f"updates may not remove a condition of type {quoted(kind)}")
        for kind in _LASTING
        if after.count(kind) < before.count(kind)
    ]
    errors += [
        forbidden(field, f"updates may not add a condition of type {quoted(kind)}")
        for kind in (() if approves else APPROVALS)
        if after.count(kind) > before.count(kind)
    ]
    given, had = (decoded(find(one, "status", "certificate")) for one in (request, old))
    if given != had and not signs:
        errors.append(forbidden("status.certificate", "updates may not set certificate content"))
    elif given != had and had:
        errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return errors


CERTIFICATE_REQUEST_RULES: Final[dict[str, Rules]] = {
    "CertificateSigningRequest.certificates.k8s.io": Rules(
        create=request_errors,
        update=_changed,
        status=lambda new, old: _changed(new, old, signs=True),
        subresources={"approval": lambda new, old: _changed(new, old, approves=True)},
    ),
}
