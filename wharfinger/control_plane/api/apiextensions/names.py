"""The validation of a CustomResourceDefinition except its schemas: names, printer columns, subresources, conversion, approval."""

from typing import Final
from urllib.parse import urlsplit

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.objects.lenient_fields import repeated
from wharfinger.control_plane.objects.names import dns_1035_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, not_supported, pointed, quoted, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

COLUMN_TYPES: Final = "boolean,date,integer,number,string"
COLUMN_FORMATS: Final = "byte,date,date-time,double,float,int32,int64,password"
APPROVED: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_REVIEWS: Final = ("v1", "v1beta1")
_WARNING_CHARS: Final = 256


def label_error(field: str, text: str, before: str = "") -> list[FieldError]:
    """Return one error with all problems of a text that must be a DNS-1035 label."""
    problems = dns_1035_label_problems(text.lower() if before else text)
    return [invalid(field, text, before + ",".join(problems))] if problems else []


def names_errors(names: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the names that are set: they must be DNS labels, but kinds may have capital letters."""
    errors: list[FieldError] = []
    cased = "may have mixed case, but should otherwise match: "
    for name, before in (("plural", ""), ("singular", ""), ("kind", cased), ("listKind", cased)):
        if text := schemas.text(names, name):
            errors += label_error(f"{path}.{name}", text, before)
    for index, short in enumerate(schemas.strings(names, "shortNames")):
        errors += label_error(f"{path}.shortNames[{index}]", short)
    kind, listed = schemas.text(names, "kind"), schemas.text(names, "listKind")
    if kind and kind == listed:
        errors.append(invalid(f"{path}.listKind", listed, "kind and listKind may not be the same"))
    for index, category in enumerate(schemas.strings(names, "categories")):
        errors += label_error(f"{path}.categories[{index}]", category)
    return errors


def deprecation_errors(version: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the deprecation warning of a version. Only a deprecated version may have such a warning."""
    warning, field = version.get("deprecationWarning"), f"{path}.deprecationWarning"
    if not isinstance(warning, str):
        return []
    if not schemas.flag(version, "deprecated"):
        return [pointed(field, warning, "can only be set for deprecated versions")]
    problems = [] if len(warning.encode()) <= _WARNING_CHARS else ["must be <= 256 characters long"]
    problems += [] if warning else ["must not be an empty string"]
    at = next((index for index, char in enumerate(warning) if not char.isprintable()), None)
    if at is not None:
        index = len(warning[:at].encode())
        why = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        problems.append(why)
    return [pointed(field, warning, problem) for problem in problems]


def column_errors(columns: list[JsonObject], path: str) -> list[FieldError]:
    """Return the errors of printer columns."""
    errors: list[FieldError] = []
    for index, column in enumerate(columns):
        place = f"{path}.additionalPrinterColumns[{index}]"
        if not schemas.text(column, "name"):
            errors.append(required(f"{place}.name"))
        kind, form = schemas.text(column, "type"), schemas.text(column, "format")
        if not kind:
            errors.append(required(f"{place}.type", f"must be one of {COLUMN_TYPES}"))
        elif kind not in COLUMN_TYPES.split(","):
            errors.append(invalid(f"{place}.type", kind, f"must be one of {COLUMN_TYPES}"))
        if form and form not in COLUMN_FORMATS.split(","):
            errors.append(invalid(f"{place}.format", form, f"must be one of {COLUMN_FORMATS}"))
        if json_path := schemas.text(column, "jsonPath"):
            errors += _path_errors(json_path, f"{place}.JSONPath")
        else:
            errors.append(required(f"{place}.JSONPath"))
    return errors


def _path_errors(text: str, field: str) -> list[FieldError]:
    return [] if text.startswith(".") else [invalid(field, text, "must be a simple json path starting with .")]


def subresource_errors(subresources: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of the paths in the subresource ``scale``."""
    scale = find(subresources, "scale")
    if not isinstance(scale, dict):
        return []
    errors: list[FieldError] = []
    for name, holder in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        field, text = f"{path}.subresources.scale.{name}", schemas.text(scale, name)
        if not text:
            errors.append(required(field))
        elif not text.startswith(f"{holder}."):
            errors += _path_errors(text, field) or [invalid(field, text, f"should be a json path under {holder}")]
    field, text = f"{path}.subresources.scale.labelSelectorPath", schemas.text(scale, "labelSelectorPath")
    if text and not text.startswith((".spec.", ".status.")):
        why = "should be a json path under either .spec or .status"
        errors += _path_errors(text, field) or [pointed(field, text, why)]
    return errors


def conversion_errors(conversion: JsonValue, path: str, *, recognized: bool) -> list[FieldError]:
    """Return the errors of the conversion between versions.

    With ``recognized``, the server must know at least one of the review versions.
    """
    if not isinstance(conversion, dict):
        return []
    strategy, webhook = schemas.text(conversion, "strategy"), schemas.child(conversion, "webhook")
    errors: list[FieldError] = []
    if not strategy:
        errors.append(required(f"{path}.strategy"))
    elif strategy not in {"None", "Webhook"}:
        errors.append(not_supported(f"{path}.strategy", strategy, ("None", "Webhook")))
    client, reviews = find(webhook, "clientConfig"), schemas.strings(webhook or {}, "conversionReviewVersions")
    if strategy == "Webhook":
        errors += _client_errors(client, f"{path}.webhookClientConfig")
        return errors + _review_errors(reviews, f"{path}.conversionReviewVersions", recognized=recognized)
    why = "should not be set when strategy is not set to Webhook"
    if client is not None:
        errors.append(forbidden(f"{path}.webhookClientConfig", why))
    return errors + ([forbidden(f"{path}.conversionReviewVersions", why)] if reviews else [])


def _client_errors(client: JsonValue, path: str) -> list[FieldError]:
    if not isinstance(client, dict):
        return [required(path, "required when strategy is set to Webhook")]
    url, service = client.get("url"), schemas.child(client, "service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return (
        webhook_url_errors(f"{path}.url", str(url)) if service is None else service_errors(f"{path}.service", service)
    )


def webhook_url_errors(field: str, url: str) -> list[FieldError]:
    """Return the errors of a webhook's URL: it needs https and a host, and may not contain user information, a query or a
    fragment.
    """
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return [required(field, f"url must be a valid URL: {error}{form}")]
    errors = []
    if parts.scheme != "https":
        errors.append(invalid(field, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not parts.netloc.rpartition("@")[2]:
        errors.append(invalid(field, parts.netloc.rpartition("@")[2], f"host must be specified{form}"))
    if parts.username is not None:
        errors.append(invalid(field, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(field, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(field, parts.query, "query parameters are not permitted in the URL"))
    return errors


def service_errors(path: str, service: JsonObject) -> list[FieldError]:
    """Return the errors of a webhook's Service."""
    errors = []
    if not schemas.text(service, "namespace"):  # upstream reports a missing field under the other name
        errors.append(required(f"{path}.name"))
    if not schemas.text(service, "name"):
        errors.append(required(f"{path}.namespace"))
    port = service.get("port")
    if isinstance(port, int) and not 1 <= port <= 65535:
        errors.append(invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    url_path = service.get("path")
    if not isinstance(url_path, str) or url_path in {"", "/"}:
        return errors
    if url_path == "//":
        return [*errors, invalid(f"{path}.path", url_path, "segment[0] may not be empty")]
    if not url_path.startswith("/"):
        errors.append(invalid(f"{path}.path", url_path, "must start with a '/'"))
    for index, step in enumerate(url_path[1:].removesuffix("/").split("/")):
        problems = subdomain_problems(step) if step else ["may not be empty"]
        between = ": " if step else " "
        errors += [invalid(f"{path}.path", url_path, f"segment[{index}]{between}{problem}") for problem in problems]
    return errors


def _review_errors(versions: list[str], path: str, *, recognized: bool) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors: list[FieldError] = []
    twice = repeated(versions)
    for index, version in enumerate(versions):
        if index in twice:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            problems = dns_1035_label_problems(version)
            errors += [invalid(f"{path}[{index}]", version, problem) for problem in problems]
    if recognized and not set(versions) & set(_REVIEWS):
        shown: list[JsonValue] = [*versions]
        errors.append(invalid(path, shown, f"must include at least one of {', '.join(_REVIEWS)}"))
    return errors


def approval(definition: JsonObject) -> tuple[str, str]:
    """Return the approval state of a definition in a protected group (``*.k8s.io``, ``*.kubernetes.io``), and a message.

    The state is "" for other groups, else ``InvalidAnnotation``, ``MissingAnnotation``, ``ApprovedAnnotation`` or
    ``UnapprovedAnnotation``.
    """
    group = find(definition, "spec", "group")
    if not isinstance(group, str) or not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return "", ""
    said = find(definition, "metadata", "annotations", APPROVED)
    text = said if isinstance(said, str) else ""
    if not text:
        return "MissingAnnotation", f"protected groups must have approval annotation {quoted(APPROVED)}, {_SEE}"
    if text.startswith("unapproved"):
        return "UnapprovedAnnotation", f"not approved: {quoted(text)}"
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.netloc and parts.scheme:
        return "ApprovedAnnotation", f"approved in {text}"
    why = f'{quoted(APPROVED)} with either a URL or a reason starting with "unapproved", {_SEE}'
    return "InvalidAnnotation", f"protected groups must have approval annotation {why}"


def approval_errors(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """Return an error if the approval annotation is missing or invalid, unless the old definition was in the same state."""
    state, why = approval(new)
    if old is not None and approval(old)[0] == state:
        return []
    field = f"metadata.annotations[{APPROVED}]"
    if state == "MissingAnnotation":
        return [required(field, why)]
    said = find(new, "metadata", "annotations", APPROVED)
    return [invalid(field, said, why)] if state == "InvalidAnnotation" else []
