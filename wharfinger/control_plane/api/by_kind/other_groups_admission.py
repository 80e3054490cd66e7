"""Admission plugins for networking and certificates: the default class of Ingresses, and the requester and the subject of
certificate requests.
"""

from typing import Final

from wharfinger.control_plane.access.users import user_info
from wharfinger.control_plane.api.certificates.certificate_requests import organizations
from wharfinger.control_plane.api.common.admission import Admission, Operation, Plugin
from wharfinger.control_plane.api.common.default_class import INGRESS_MARKS, default_class
from wharfinger.control_plane.api.core.secrets import decoded
from wharfinger.control_plane.api.networking.ingresses import CLASS_ANNOTATION
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, find

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_MASTERS: Final = "system:masters"
_REQUESTER: Final = ("username", "uid", "groups", "extra")


def fill_ingress_class(admission: Admission, ingress: JsonObject) -> JsonObject:
    """Give an Ingress that has no class the default class, or the newest default class if there are several."""
    named = find(ingress, "spec", "ingressClassName")
    if (
        admission.subresource
        or named is not None
        or find(ingress, "metadata", "annotations", CLASS_ANNOTATION) is not None
    ):
        return ingress
    name = default_class(admission.view.objects("networking.k8s.io", "ingressclasses"), INGRESS_MARKS)
    return {**ingress, "spec": {**(part(ingress, "spec") or {}), "ingressClassName": name}} if name else ingress


def record_requester(admission: Admission, request: JsonObject) -> JsonObject:
    """Set the user in the spec of a certificate request to the user who sends the API request, whatever the client wrote."""
    spec = {name: value for name, value in (part(request, "spec") or {}).items() if name not in _REQUESTER}
    return {**request, "spec": {**spec, **user_info(admission.user)}}


def check_subject(admission: Admission) -> None:
    """Refuse a request for a client certificate whose subject is in ``system:masters``. Raises StatusError (403)."""
    if text(admission.obj, "spec", "signerName") != CLIENT_SIGNER:
        return
    try:
        asked = organizations(decoded(find(admission.obj, "spec", "request")))
    except ValueError as error:
        why = f"failed to parse CSR: {error}"
        raise status.forbidden(admission.kind, admission.name, why) from error
    if _MASTERS in asked:
        why = f"use of {CLIENT_SIGNER} signer with {_MASTERS} group is not allowed"
        raise status.forbidden(admission.kind, admission.name, why)


GROUP_PLUGINS: Final[tuple[Plugin, ...]] = (
    Plugin(
        "DefaultIngressClass",
        frozenset({Operation.CREATE}),
        frozenset({"Ingress.networking.k8s.io"}),
        mutate=fill_ingress_class,
    ),
    Plugin(
        "CertificateSubjectRestriction",
        frozenset({Operation.CREATE}),
        frozenset({"CertificateSigningRequest.certificates.k8s.io"}),
        mutate=record_requester,
        check=check_subject,
    ),
)
