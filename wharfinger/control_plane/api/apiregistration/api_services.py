"""The validation of APIServices (apiregistration.k8s.io/v1). APIServices with a Service are stored, but the Service is never
called.
"""

from typing import Final

from wharfinger.control_plane.api.core.secrets import decoded
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.objects.name_rules import segment_name
from wharfinger.control_plane.objects.names import dns_1035_label_problems, port_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, invalid, not_supported, quoted, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

HIGHEST_GROUP: Final = 20_000
HIGHEST_VERSION: Final = 1_000
STATUSES: Final = ("True", "False", "Unknown")


def api_service_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of an APIService; its name must be ``<version>.<group>``."""
    spec = part(one, "spec") or {}
    group, version = text(spec, "group"), text(spec, "version")
    wanted = f"{version}.{group}"

    def named(name: str, prefix: bool) -> list[str]:  # noqa: FBT001 - the shape of a rule
        why = f'must be `spec.version+"."+spec.group`: {quoted(wanted)}'
        return segment_name(name, prefix) or ([] if name == wanted else [why])

    errors = core_meta_errors(one, namespaced=False, name=named, finalizers=False)
    if not group and version != "v1":
        errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    errors += each("spec.group", group, subdomain_problems(group)) if group else []
    errors += each("spec.version", version, dns_1035_label_problems(version))
    for field, highest in (("groupPriorityMinimum", HIGHEST_GROUP), ("versionPriority", HIGHEST_VERSION)):
        if not 0 < (value := number(spec, field)) <= highest:
            errors.append(invalid(f"spec.{field}", value, f"must be positive and less than {highest}"))
    service = part(spec, "service")
    return errors + (_local_errors(spec) if service is None else _service_errors(spec, service))


def _local_errors(spec: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    if bundle := decoded(spec.get("caBundle")):
        errors.append(invalid("spec.caBundle", f"{len(bundle)} bytes", "local APIServices may not have a caBundle"))
    if flag(spec, "insecureSkipTLSVerify"):
        why = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, why))  # noqa: FBT003 - what was given
    return errors


def _service_errors(spec: JsonObject, service: JsonObject) -> list[FieldError]:
    errors = [required(f"spec.service.{name}") for name in ("namespace", "name") if not text(service, name)]
    port = number(service, "port")
    if problems := port_problems(port):
        errors.append(invalid("spec.service.port", port, f"port is not valid: {', '.join(problems)}"))
    if flag(spec, "insecureSkipTLSVerify") and decoded(spec.get("caBundle")):
        why = "may not be true if caBundle is present"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, why))  # noqa: FBT003 - what was given
    return errors


def _status_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    return [
        not_supported(f"status.conditions[{index}].status", status, STATUSES)
        for index, condition in enumerate(parts(new, "status", "conditions"))
        if (status := text(condition, "status")) not in STATUSES
    ]


API_SERVICE_RULES: Final[dict[str, Rules]] = {
    "APIService.apiregistration.k8s.io": Rules(
        create=api_service_errors, update=lambda new, _old: api_service_errors(new), status=_status_errors
    ),
}
