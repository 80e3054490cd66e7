"""The validation of probes and lifecycle hooks of containers."""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.objects.amounts import not_negative, number, optional_number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.objects.names import header_problems, port_name_problems, port_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES: Final = ("HTTP", "HTTPS")


@dataclass(frozen=True, slots=True)
class _Handler:
    """The validation of the handlers of probes and lifecycle hooks.

    ``grace`` is the pod's termination grace period in seconds, which a ``sleep`` may not exceed; None if the pod has none.
    """

    grace: int | None

    def errors(self, holder: JsonObject, names: tuple[str, ...], path: str) -> list[FieldError]:
        """Return the errors of the handler; there must be exactly one handler."""
        errors: list[FieldError] = []
        judged = False
        for name in names:
            handler = part(holder, name)
            if handler is None:
                continue
            if judged:
                errors.append(forbidden(f"{path}.{name}", "may not specify more than 1 handler type"))
            else:
                judged = True
                errors += self._one(name, handler, f"{path}.{name}")
        return errors if judged else [*errors, required(path, "must specify a handler type")]

    def _one(self, name: str, handler: JsonObject, path: str) -> list[FieldError]:
        match name:
            case "exec":
                return [] if texts(handler, "command") else [required(f"{path}.command")]
            case "httpGet":
                return _http_errors(handler, path)
            case "sleep":
                return self._sleep_errors(number(handler, "seconds"), path)
            case "grpc":
                return _port_errors(number(handler, "port"), f"{path}.port")
            case _:
                return _port_errors(handler.get("port"), f"{path}.port")

    def _sleep_errors(self, seconds: int, path: str) -> list[FieldError]:
        if self.grace is None or 0 <= seconds <= self.grace:
            return []
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({self.grace})"
        return [invalid(path, seconds, why)]


def _http_errors(request: JsonObject, path: str) -> list[FieldError]:
    errors = [] if text(request, "path") else [required(f"{path}.path")]
    errors += _port_errors(request.get("port"), f"{path}.port")
    scheme = text(request, "scheme")
    if scheme not in _SCHEMES:
        errors.append(not_supported(f"{path}.scheme", scheme, _SCHEMES))
    for header in parts(request, "httpHeaders"):
        name = text(header, "name")
        errors += each(f"{path}.httpHeaders", name, header_problems(name))
    return errors


def _port_errors(port: JsonValue, path: str) -> list[FieldError]:
    if isinstance(port, str):
        return each(path, port, port_name_problems(port))
    count = port if isinstance(port, int) else 0
    return [invalid(path, count, problem) for problem in port_problems(count)]


def probe_errors(container: JsonObject, path: str, grace: int | None) -> list[FieldError]:
    """Return the errors of the probes of the container at ``path``."""
    errors: list[FieldError] = []
    for name in PROBES:
        probe = part(container, name)
        if probe is not None:
            errors += _probe_errors(probe, name, f"{path}.{name}", grace)
    return errors


def _probe_errors(probe: JsonObject, name: str, path: str, grace: int | None) -> list[FieldError]:
    errors = _Handler(grace).errors(probe, _PROBE_HANDLERS, path)
    for count in _COUNTS:
        errors += not_negative(probe.get(count), f"{path}.{count}")
    own, where = optional_number(probe, "terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    if own is not None and own <= 0:
        errors.append(invalid(where, own, "must be greater than 0"))
    if name == "readinessProbe":
        if own is not None:
            errors.append(invalid(where, own, "must not be set for readinessProbes"))
    elif number(probe, "successThreshold") != 1:
        errors.append(invalid(f"{path}.successThreshold", number(probe, "successThreshold"), "must be 1"))
    return errors


def lifecycle_errors(container: JsonObject, path: str, grace: int | None) -> list[FieldError]:
    """Return the errors of the lifecycle hooks of the container at ``path``."""
    errors: list[FieldError] = []
    for name in ("postStart", "preStop"):
        hook = part(container, "lifecycle", name)
        if hook is not None:
            errors += _Handler(grace).errors(hook, _HOOK_HANDLERS, f"{path}.lifecycle.{name}")
    return errors
