"""The validation of the addresses of admission webhooks: a URL, or a Service and a path."""

from urllib.parse import urlsplit

from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.control_plane.objects.names import port_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

_FORM = "; desired format: https://host[/path]"


def client_errors(config: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a ``clientConfig``: exactly one of ``url`` and ``service`` must be set."""
    url, service = find(config, "url"), part(config, "service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return url_errors(str(url), f"{path}.url") if service is None else service_errors(service, f"{path}.service")


def url_errors(url: str, field: str) -> list[FieldError]:
    """Return the errors of a webhook's URL."""
    try:
        parsed = urlsplit(url)
    except ValueError as error:
        return [required(field, f"url must be a valid URL: {error}{_FORM}")]
    errors: list[FieldError] = []
    if parsed.scheme != "https":
        errors.append(invalid(field, parsed.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    user, at, host = parsed.netloc.rpartition("@")
    if not host:
        errors.append(invalid(field, "", f"host must be specified{_FORM}"))
    if at:
        errors.append(invalid(field, user, "user information is not permitted in the URL"))
    if parsed.fragment:
        errors.append(invalid(field, parsed.fragment, "fragments are not permitted in the URL"))
    if parsed.query:
        errors.append(invalid(field, parsed.query, "query parameters are not permitted in the URL"))
    return errors


def service_errors(service: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a webhook's Service.

    As in upstream, a missing namespace is reported at ``name``, and a missing name at ``namespace``.
    """
    errors = [] if text(service, "namespace") else [required(f"{path}.name")]
    errors += [] if text(service, "name") else [required(f"{path}.namespace")]
    port = number(service, "port")
    if problems := port_problems(port):
        errors.append(invalid(f"{path}.port", port, f"port is not valid: {', '.join(problems)}"))
    return errors + _path_errors(text(service, "path"), f"{path}.path")


def _path_errors(path: str, field: str) -> list[FieldError]:
    if path in {"", "/"}:
        return []
    if path == "//":
        return [invalid(field, path, "segment[0] may not be empty")]
    errors = [] if path.startswith("/") else [invalid(field, path, "must start with a '/'")]
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(field, path, f"segment[{index}] may not be empty"))
        else:
            errors += [invalid(field, path, f"segment[{index}]: {problem}") for problem in subdomain_problems(step)]
    return errors
