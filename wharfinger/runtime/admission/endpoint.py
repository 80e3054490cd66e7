"""The address of the admission server: where it listens, how API servers reach it, and the webhook configuration for them."""

import ipaddress
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.webhooks.configurations import Server
from wharfinger.kube.names import is_label
from wharfinger.runtime.resources.resources import GROUP, VERSION

CONFIGURATION: Final = "wharfinger.dev"
"""The name of the ValidatingWebhookConfiguration."""
WEBHOOK: Final = "packages.wharfinger.dev"
PATH: Final = "/validate"
TIMEOUT_S: Final = 3
SERVICE_PORT: Final = 443
PORT_NAME: Final = "admission"
"""The name of the Service's port. The EndpointSlice has a port of the same name, so the Service forwards to it."""
MAX_PORT: Final = 65_535


class AdmissionAddressError(ValueError):
    """An option with an address of the admission server is wrong."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address that the server listens on, and the Service in front of it. Without a Service, API servers call the address
    itself.
    """

    host: str
    port: int
    service: tuple[str, str] | None = None
    """The namespace and the name of the Service."""
    pod: str = ""
    """The address of this pod, to which the Service must send requests; "" if the Service has a selector."""

    @property
    def names(self) -> tuple[str, ...]:
        """The DNS names and IP addresses that the certificate must have."""
        if self.service is None:
            return (self.host,)
        namespace, name = self.service
        return (f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local")


def read_endpoint(address: str, service: str, pod: str = "") -> Endpoint:
    """Parse the address to listen on (``HOST:PORT``), the Service (``NAMESPACE/NAME``) and the pod's address ("" for none).
    Raises AdmissionAddressError.
    """
    host, colon, digits = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MAX_PORT))):
        raise AdmissionAddressError(
            f"--admission {address[:80]!r}: expected HOST:PORT, [IPv6]:PORT, or :PORT with a Service"
        )
    if int(digits) > MAX_PORT:
        raise AdmissionAddressError(f"--admission {address[:80]!r}: expected a port up to {MAX_PORT}")
    if not service:
        if pod:
            raise AdmissionAddressError(
                "--admission-pod-ip is used only with --admission-service; add that option, or leave this one out"
            )
        if not host:
            raise AdmissionAddressError(
                f"--admission {address[:80]!r}: expected the host by which API servers reach this machine; name it, or the "
                "Service with --admission-service"
            )
        return Endpoint(host, int(digits))
    namespace, _, name = service.partition("/")
    if not (is_label(namespace) and is_label(name)):
        raise AdmissionAddressError(f"--admission-service {service[:80]!r}: expected NAMESPACE/NAME of a Service")
    return Endpoint(host, int(digits), (namespace, name), _ip(pod) if pod else "")


def _ip(text: str) -> str:
    """Return an IP address in its usual form. Raises AdmissionAddressError."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise AdmissionAddressError(f"--admission-pod-ip {text[:80]!r}: expected an IP address") from error


def endpoint_slice(endpoint: Endpoint, port: int) -> JsonObject | None:
    """Return the EndpointSlice that makes the Service send all requests to this pod, at ``port``; None without a Service, or if
    the Service has a selector.

    The pods of daemons on standby have the same labels as the pod of the leader, but do not listen. So a Service with a
    selector would send some requests to standby daemons, where they fail. If the webhook of a hook has the failure policy
    ``Fail``, the API server would then refuse requests of users.
    """
    if endpoint.service is None or not endpoint.pod:
        return None
    namespace, name = endpoint.service
    labels: JsonObject = {
        "kubernetes.io/service-name": name,
        "endpointslice.kubernetes.io/managed-by": GROUP,
        "app.kubernetes.io/managed-by": "wharfinger",
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "addressType": "IPv6" if ":" in endpoint.pod else "IPv4",
        "endpoints": [{"addresses": [endpoint.pod], "conditions": {"ready": True}}],
        "ports": [{"name": PORT_NAME, "port": port, "protocol": "TCP"}],
    }


def server_of(endpoint: Endpoint, port: int, bundle: str) -> Server:
    """Return the server in the form that the webhook configurations of hooks need; the arguments are those of
    `webhook_configuration`.
    """
    if endpoint.service is not None:
        return Server(bundle, service=(*endpoint.service, SERVICE_PORT))
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return Server(bundle, url=f"https://{host}:{port}")


def webhook_configuration(endpoint: Endpoint, port: int, bundle: str) -> JsonObject:
    """Return the ValidatingWebhookConfiguration. ``port`` is the port that the server listens on; ``bundle`` has the authorities
    in PEM form.

    A daemon that is stopped must not block the cluster, so the failure policy is ``Ignore``, and API servers wait for an
    answer for TIMEOUT_S only.
    """
    client = server_of(endpoint, port, bundle).client_config(PATH)
    rule: JsonObject = {
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["applications", "modules", "packagerepositories"],
        "scope": "*",
    }
    webhook: JsonObject = {
        "name": WEBHOOK,
        "clientConfig": client,
        "rules": [rule],
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION, "labels": {"app.kubernetes.io/managed-by": "wharfinger"}},
        "webhooks": [webhook],
    }
