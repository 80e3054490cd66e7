"""Identities (authentication.k8s.io/v1): the user of a request, the user of a token, and new tokens for service accounts."""

from datetime import timedelta
from typing import Final

from wharfinger.control_plane.access.users import User, user_info
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.special_endpoints.endpoint import EndpointRequest, EndpointTable
from wharfinger.control_plane.special_endpoints.request_admission import admit, changed
from wharfinger.control_plane.special_endpoints.review_bodies import (
    check_name_parameter,
    kind_served,
    read_body,
    reviewed,
)
from wharfinger.control_plane.special_endpoints.service_account_tokens import ISSUER, Binding, TokenError, TokenSigner
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.formats.json.value import JsonObject, find, find_int, find_list, find_object, find_str
from wharfinger.kube.times import format_time

GROUP: Final = "authentication.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
SHORTEST_S: Final = 600
LONGEST_S: Final = 2**32
DEFAULT_S: Final = 3600
_BOUND: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def token_review(asked: EndpointRequest) -> JsonObject:
    """Answer a TokenReview: the user to whom a token belongs."""
    review = reviewed(asked)
    token = find_str(review, "spec", "token")
    if not token:
        raise status.bad_request("token is required for TokenReview in authentication")
    admit(asked, review)
    audiences = tuple(str(item) for item in find_list(review, "spec", "audiences")) or (ISSUER,)
    try:
        user, meant = _user_of_token(asked.backend, token, audiences)
    except TokenError as error:
        return {**review, "status": {"user": {}, "error": str(error)}}
    return {**review, "status": {"authenticated": True, "user": user_info(user), "audiences": list(meant)}}


def _user_of_token(backend: Backend, token: str, audiences: tuple[str, ...]) -> tuple[User, tuple[str, ...]]:
    if token.count(".") == 2:
        return TokenSigner(backend).verified(token, audiences)
    user = backend.by_token(token)
    if user is None or ISSUER not in audiences:
        raise TokenError("invalid bearer token")
    return user, (ISSUER,)


def token_request(asked: EndpointRequest) -> JsonObject:
    """Return a token for a service account (``serviceaccounts/NAME/token``)."""
    form = kind_served(GROUP, "v1", "TokenRequest")
    sent = read_body(asked, form)
    request = changed(asked, _with_defaults(sent), form)
    _check_place(asked, request)
    account = asked.backend.get(asked.served, asked.namespace, asked.name)
    if account is None:
        raise status.not_found(asked.served.kind, asked.name)
    given = find_str(request, "metadata", "uid")
    if given and given != (uid := find_str(account, "metadata", "uid")):
        why = f"the UID in the token request ({given}) does not match the UID of the service account ({uid})"
        message = f'Operation cannot be fulfilled on TokenRequest.{GROUP} "{asked.name}": {why}'
        details: JsonObject = {"name": asked.name, "group": GROUP, "kind": "TokenRequest"}
        raise status.StatusError(409, "Conflict", message, details)
    spec = find_object(request, "spec")
    seconds = find_int(spec, "expirationSeconds", default=DEFAULT_S)
    errors = []
    if seconds < SHORTEST_S:
        errors.append(invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if seconds > LONGEST_S:
        errors.append(invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"))
    if errors:
        raise status.invalid(GROUP, "TokenRequest", "", errors)
    audiences = [str(item) for item in find_list(spec, "audiences")] or [ISSUER]
    now = asked.backend.now()
    admit(asked, _as_judged(asked, request, audiences, format_time(now)), form)
    expires = now + timedelta(seconds=seconds)
    token = TokenSigner(asked.backend).sign(account, audiences, now, expires, _bound(asked, spec))
    metadata = find_object(account, "metadata")
    return {
        "kind": "TokenRequest",
        "apiVersion": API_VERSION,
        "metadata": {
            **{name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata},
            "creationTimestamp": format_time(now),
            **_written(asked, find_object(sent, "spec"), format_time(now)),
        },
        "spec": {
            "audiences": list(audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": format_time(expires)},
    }


def _with_defaults(request: JsonObject) -> JsonObject:
    """Return a token request with all fields of its type, as mutating webhooks get it."""
    spec = find_object(request, "spec")
    given: JsonObject = {"audiences": spec.get("audiences"), "boundObjectRef": spec.get("boundObjectRef")}
    seconds = spec.get("expirationSeconds")
    return {
        **request,
        "spec": {**given, "expirationSeconds": DEFAULT_S if seconds is None else seconds},
        "status": {"token": "", "expirationTimestamp": None},
    }


def _as_judged(asked: EndpointRequest, request: JsonObject, audiences: list[str], time: str) -> JsonObject:
    """Return a token request as validating webhooks get it: complete, and without a token."""
    metadata: JsonObject = {"name": asked.name, "namespace": asked.namespace, "creationTimestamp": time}
    spec: JsonObject = {**find_object(request, "spec"), "audiences": [*audiences]}
    return {**request, "metadata": {**find_object(request, "metadata"), **metadata}, "spec": spec}


def _check_place(asked: EndpointRequest, request: JsonObject) -> None:
    """Refuse (422) a token request if its body and its path name different accounts."""
    for field, wanted, said in (("name", asked.name, "name"), ("namespace", asked.namespace, "namespace")):
        given = find_str(request, "metadata", field)
        if given and given != wanted:
            error = invalid(f"metadata.{field}", given, f"must match the service account {said} if specified")
            raise status.invalid(GROUP, "TokenRequest", asked.name, [error])


def _written(asked: EndpointRequest, spec: JsonObject, time: str) -> JsonObject:
    """Return the managed fields of a TokenRequest; ``expirationSeconds`` is always among them."""
    owned: JsonObject = {f"f:{name}": {} for name in sorted({"expirationSeconds", *spec} - {"boundObjectRef"})}
    bound = spec.get("boundObjectRef")
    if isinstance(bound, dict):
        owned["f:boundObjectRef"] = {".": {}, **{f"f:{name}": {} for name in sorted(bound)}}
    entry: JsonObject = {
        "manager": asked.options.manager,
        "operation": "Update",
        "apiVersion": API_VERSION,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": dict(sorted(owned.items()))},
        "subresource": "token",
    }
    return {"managedFields": [entry]}


def _bound(asked: EndpointRequest, spec: JsonObject) -> list[Binding]:
    reference = spec.get("boundObjectRef")
    if not isinstance(reference, dict):
        return []
    kind, name = find_str(reference, "kind"), find_str(reference, "name")
    plural = _BOUND.get(kind)
    group, _, version = find_str(reference, "apiVersion").rpartition("/")
    if plural is None or group:
        raise status.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    check_name_parameter(name)
    found = asked.backend.object("", plural, "" if plural == "nodes" else asked.namespace, name)
    if found is None:
        details: JsonObject = {"name": name, "kind": plural}
        raise status.StatusError(404, "NotFound", f'{plural} "{name}" not found', details)
    if plural == "pods" and find_str(found, "spec", "serviceAccountName") != asked.name:
        raise status.bad_request(
            f'cannot bind token for serviceaccount "{asked.name}" to pod running with different serviceaccount name.'
        )
    uid = find_str(found, "metadata", "uid")
    given = find_str(reference, "uid")
    if given and given != uid:
        why = (
            f"the UID in the bound object reference ({given}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
        raise status.StatusError(409, "Conflict", message, {"name": name, "kind": kind})
    bound = [Binding(kind.lower(), name, uid)]
    node = find_str(found, "spec", "nodeName") if plural == "pods" else ""
    if node:
        known = asked.backend.object("", "nodes", "", node)
        bound.insert(0, Binding("node", node, str(find(known, "metadata", "uid") or "")))
    return bound


def self_subject_review(asked: EndpointRequest) -> JsonObject:
    """Answer a SelfSubjectReview: the user who sends the request."""
    admit(asked, changed(asked, read_body(asked, asked.served)))
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": API_VERSION,
        "metadata": {"creationTimestamp": format_time(asked.backend.now())},
        "status": {"userInfo": user_info(asked.options.user)},
    }


IDENTITY_ENDPOINTS: Final[EndpointTable] = {
    f"SelfSubjectReview.{GROUP}": self_subject_review,
    f"TokenReview.{GROUP}": token_review,
    "ServiceAccount/token": token_request,
}
"""The functions that answer reviews of identity and token requests, by kind or subresource."""
