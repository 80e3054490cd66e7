"""Access reviews (authorization.k8s.io/v1): checks whether a user is allowed to do something, and lists of permissions."""

from typing import Final

from wharfinger.control_plane.access.rbac import decide, grants
from wharfinger.control_plane.access.role_rules import Attributes, strings
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.kinds.type_shapes import metadata_list_types
from wharfinger.control_plane.objects.object_metadata import with_metadata
from wharfinger.control_plane.special_endpoints.endpoint import EndpointRequest, EndpointTable
from wharfinger.control_plane.special_endpoints.request_admission import admit
from wharfinger.control_plane.special_endpoints.review_bodies import reviewed
from wharfinger.control_plane.special_endpoints.review_selectors import evaluation_error, selector_errors
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.control_plane.wire.go_printing import struct_order
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str

GROUP: Final = "authorization.k8s.io"
_EVERYTHING: Final[tuple[JsonObject, ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


def self_subject_access_review(asked: EndpointRequest) -> JsonObject:
    """Answer a SelfSubjectAccessReview: whether the user who sends the request is allowed to do something."""
    review = reviewed(asked)
    _check(_exclusive(review) + _selectors(review) + _bare(review))
    return _judged(asked, review, asked.options.user)


def subject_access_review(asked: EndpointRequest) -> JsonObject:
    """Answer a SubjectAccessReview: whether the named user is allowed to do something."""
    review = reviewed(asked)
    _check(_exclusive(review) + _subject(review) + _selectors(review) + _bare(review))
    return _judged(asked, review, _user(review))


def local_subject_access_review(asked: EndpointRequest) -> JsonObject:
    """Answer a LocalSubjectAccessReview: whether the named user is allowed to do something in a namespace."""
    review = reviewed(asked)
    errors = _exclusive(review) + _subject(review) + _selectors(review)
    errors += _bare(review, but="namespace", why="must be empty except for namespace")
    namespace = find_str(review, "metadata", "namespace") or asked.namespace
    attributes = find(review, "spec", "resourceAttributes")
    if isinstance(attributes, dict) and find_str(attributes, "namespace") != namespace:
        given = find_str(attributes, "namespace")
        errors.append(invalid("spec.resourceAttributes.namespace", given, "must match metadata.namespace"))
    if isinstance(find(review, "spec", "nonResourceAttributes"), dict):
        shown = _go_form(find(review, "spec", "nonResourceAttributes"))
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    _check(errors)
    return _judged(asked, with_metadata(review, {"namespace": namespace}), _user(review))


def self_subject_rules_review(asked: EndpointRequest) -> JsonObject:
    """Answer a SelfSubjectRulesReview: the permissions, in a namespace, of the user who sends the request."""
    review = reviewed(asked)
    namespace = find_str(review, "spec", "namespace")
    if not namespace:
        raise status.bad_request("no namespace on request")
    admit(asked, review)
    found = list(grants(asked.backend, asked.options.user, namespace))
    rules: list[JsonObject] = [dict(rule) for rule in _EVERYTHING] if asked.options.user.administrator else []
    rules += [grant.rule for grant in found if grant.rule is not None]
    missing = [grant.source for grant in found if grant.rule is None]
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": f"{GROUP}/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [_resource_rule(rule) for rule in rules if strings(rule, "resources")],
            "nonResourceRules": [_path_rule(rule) for rule in rules if strings(rule, "nonResourceURLs")],
            "incomplete": False,
            **({"evaluationError": ", ".join(missing)} if missing else {}),
        },
    }


def _resource_rule(rule: JsonObject) -> JsonValue:
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    return {field: list(strings(rule, field)) for field in fields if strings(rule, field)}


def _path_rule(rule: JsonObject) -> JsonValue:
    return {field: list(strings(rule, field)) for field in ("verbs", "nonResourceURLs")}


def _check(errors: list[FieldError]) -> None:
    if errors:
        raise status.invalid(GROUP, "", "", errors)


def _exclusive(review: JsonObject) -> list[FieldError]:
    spec = find_object(review, "spec")
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", _go_form(path), why)]
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, why)]
    return []


def _go_form(path: JsonValue) -> JsonValue:
    """Return ``nonResourceAttributes`` as error messages show them: with the field names of the server's internal type."""
    return {"Path": find_str(path, "path"), "Verb": find_str(path, "verb")}


def _subject(review: JsonObject) -> list[FieldError]:
    if find_str(review, "spec", "user") or find_list(review, "spec", "groups"):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _selectors(review: JsonObject) -> list[FieldError]:
    return selector_errors(find(review, "spec", "resourceAttributes"), "spec.resourceAttributes")


def _bare(review: JsonObject, *, but: str = "", why: str = "must be empty") -> list[FieldError]:
    metadata = find_object(review, "metadata")
    if not metadata.keys() - {"managedFields", but}:
        return []
    return [invalid("metadata", struct_order(metadata, metadata_list_types()), why)]


def _user(review: JsonObject) -> User:
    spec = find_object(review, "spec")
    extra = {name: tuple(str(item) for item in find_list(spec, "extra", name)) for name in find_object(spec, "extra")}
    groups = tuple(str(item) for item in find_list(spec, "groups"))
    return User(find_str(spec, "user"), groups, find_str(spec, "uid"), extra)


def _judged(asked: EndpointRequest, review: JsonObject, user: User) -> JsonObject:
    admit(asked, review)
    decision = decide(asked.backend, _attributes(review, user))
    judged: JsonObject = {"allowed": decision.allowed}
    if decision.reason:
        judged["reason"] = decision.reason
    if error := evaluation_error(find(review, "spec", "resourceAttributes")):
        judged["evaluationError"] = error
    return {**review, "status": judged}


def _attributes(review: JsonObject, user: User) -> Attributes:
    spec = find_object(review, "spec")
    path = spec.get("nonResourceAttributes")
    if isinstance(path, dict):
        return Attributes(user=user, verb=find_str(path, "verb"), path=find_str(path, "path"))
    about = find_object(spec, "resourceAttributes")
    return Attributes(
        user=user,
        verb=find_str(about, "verb"),
        namespace=find_str(about, "namespace"),
        group=find_str(about, "group"),
        version=find_str(about, "version"),
        resource=find_str(about, "resource"),
        subresource=find_str(about, "subresource"),
        name=find_str(about, "name"),
    )


ACCESS_ENDPOINTS: Final[EndpointTable] = {
    f"SelfSubjectAccessReview.{GROUP}": self_subject_access_review,
    f"SubjectAccessReview.{GROUP}": subject_access_review,
    f"LocalSubjectAccessReview.{GROUP}": local_subject_access_review,
    f"SelfSubjectRulesReview.{GROUP}": self_subject_rules_review,
}
"""The functions that answer access reviews, by kind."""
