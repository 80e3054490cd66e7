"""What a request says beside its object: ``CreateOptions``, ``PatchOptions``, ``DeleteOptions``, ``ListOptions``.

Parsed once, and refused here where the kube-apiserver refuses them (``metav1/validation``); verbs take them as given.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.authentication import ADMINISTRATOR, User
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, encode_json, find, find_str

Query = Mapping[str, tuple[str, ...]]
MANAGER_LIMIT: Final = 128
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")
_DIGITS: Final = re.compile(r"[0-9]+")
_SIGNED: Final = re.compile(r"[+-]?[0-9]+")
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True", ""})


class FieldValidation(StrEnum):
    """What becomes of a request with fields that nobody declared."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Of creates, updates and patches."""

    manager: str
    dry_run: bool = False
    force: bool = False
    validation: FieldValidation = FieldValidation.WARN
    user: User = ADMINISTRATOR
    """Who asks, for admission."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Of deletes; empty values ask for nothing."""

    dry_run: bool = False
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Of lists and watches, selectors not parsed yet; ``revision`` is None where none was given."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    revision: int | None = None
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_seconds: int | None = None


def _last(query: Query, name: str) -> str:
    values = query.get(name)
    return values[-1] if values else ""


def _flag(query: Query, name: str) -> bool:
    """A boolean as Go's clients write it; a parameter without value is true."""
    return name in query and _last(query, name) in _TRUE


def _refuse(kind: str, errors: Sequence[FieldError]) -> None:
    if errors:
        raise status.invalid("meta.k8s.io", kind, "", errors)


def _unsupported(field: str, value: str, supported: Sequence[str]) -> FieldError:
    among = ", ".join(f'"{item}"' for item in supported)
    return FieldError(field, "FieldValueNotSupported", f"Unsupported value: {value}: supported values: {among}")


def _dry_run(values: Sequence[str]) -> tuple[bool, list[FieldError]]:
    if not values or set(values) == {"All"}:
        return bool(values), []
    return False, [_unsupported("dryRun", encode_json(list(values)).decode(), ["All"])]


def default_manager(user_agent: str) -> str:
    """The field manager of a request that names none: its User-Agent up to the slash."""
    prefix = "".join(char for char in user_agent.partition("/")[0] if char.isprintable())
    return prefix.encode()[:MANAGER_LIMIT].decode(errors="ignore") or "unknown"


def parse_write_options(query: Query, user_agent: str, kind: str) -> WriteOptions:
    """Options of a write; ``kind`` is ``CreateOptions``, ``UpdateOptions`` or ``PatchOptions``. Raises StatusError."""
    dry_run, errors = _dry_run(query.get("dryRun", ()))
    validation = _last(query, "fieldValidation")
    if validation not in _FIELD_VALIDATION:
        errors.append(_unsupported("fieldValidation", f'"{validation}"', _FIELD_VALIDATION))
    manager = _last(query, "fieldManager")
    if len(manager.encode()) > MANAGER_LIMIT:
        errors.append(
            FieldError("fieldManager", "FieldValueTooLong", f"Too long: may not be more than {MANAGER_LIMIT} bytes")
        )
    if not manager.isprintable():
        errors.append(
            FieldError(
                "fieldManager",
                "FieldValueInvalid",
                f'Invalid value: "{manager}": should only contain printable characters',
            )
        )
    _refuse(kind, errors)
    return WriteOptions(
        manager or default_manager(user_agent),
        dry_run,
        _flag(query, "force"),
        FieldValidation(validation) if validation else FieldValidation.WARN,
    )


def check_patch_options(query: Query, *, apply: bool) -> None:
    """What is said of a patch only with its type known. Raises StatusError."""
    errors = []
    if apply and not _last(query, "fieldManager"):
        errors.append(FieldError("fieldManager", "FieldValueRequired", "Required value: is required for apply patch"))
    if not apply and "force" in query:
        errors.append(FieldError("force", "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch"))
    _refuse("PatchOptions", errors)


def parse_delete_options(query: Query, body: JsonValue) -> DeleteOptions:
    """Options of a delete, from its body or, where there is none, its parameters. Raises StatusError."""
    given: JsonObject = {}
    if isinstance(body, dict) and body:
        given = body
    else:
        for name in ("propagationPolicy", "orphanDependents"):
            if name in query:
                given[name] = _last(query, name)
    if "dryRun" in query:
        given = {**given, "dryRun": list(query["dryRun"])}
    try:
        return _delete_options(given)
    except ShapeError as error:
        raise status.bad_request(f"DeleteOptions: {error}") from error


def _delete_options(given: JsonObject) -> DeleteOptions:
    values = given.get("dryRun")
    dry_run, errors = _dry_run([str(item) for item in values] if isinstance(values, list) else [])
    propagation = find_str(given, "propagationPolicy")
    orphan = given.get("orphanDependents")
    if propagation and orphan is not None:
        message = f'Invalid value: "{propagation}": orphanDependents and deletionPropagation cannot be both set'
        errors.append(FieldError("propagationPolicy", "FieldValueInvalid", message))
    elif propagation and propagation not in _PROPAGATION:
        errors.append(_unsupported("propagationPolicy", f'"{propagation}"', (*_PROPAGATION, "nil")))
    _refuse("DeleteOptions", errors)
    if orphan is not None:
        propagation = "Orphan" if orphan in (True, "true") else "Background"
    return DeleteOptions(
        dry_run,
        propagation,
        find_str(given, "preconditions", "uid"),
        find_str(given, "preconditions", "resourceVersion"),
    )


def parse_list_options(query: Query, *, watch: bool = False) -> ListOptions:
    """Options of a list or, with ``watch`` or by its parameter, of a watch. Raises StatusError."""
    watch = watch or _flag(query, "watch")
    initial = _flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    options = ListOptions(
        label_selector=_last(query, "labelSelector"),
        field_selector=_last(query, "fieldSelector"),
        limit=max(_integer(query, "limit") or 0, 0),
        continue_token=_last(query, "continue"),
        revision=parse_revision(_last(query, "resourceVersion")),
        match=_last(query, "resourceVersionMatch"),
        watch=watch,
        bookmarks=_flag(query, "allowWatchBookmarks"),
        initial_events=initial,
        timeout_seconds=_integer(query, "timeoutSeconds"),
    )
    _refuse("ListOptions", _watch_errors(options) if watch else _list_errors(options))
    return options


def _integer(query: Query, name: str) -> int | None:
    text = _last(query, name)
    if not text:
        return None
    if not _SIGNED.fullmatch(text):
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def parse_revision(text: str) -> int | None:
    """A resourceVersion in a query; "" is None. Raises StatusError."""
    if not text:
        return None
    if not _DIGITS.fullmatch(text):
        raise status.internal(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def _forbidden(message: str) -> FieldError:
    return FieldError("resourceVersionMatch", "FieldValueForbidden", f"Forbidden: {message}")


def _list_errors(options: ListOptions) -> list[FieldError]:
    if options.initial_events is not None:
        message = "Forbidden: sendInitialEvents is forbidden for list"
        return [FieldError("sendInitialEvents", "FieldValueForbidden", message)]
    if not options.match:
        return []
    if options.revision is None:
        return [_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")]
    if options.continue_token:
        return [_forbidden("resourceVersionMatch is forbidden when continue is provided")]
    if options.match not in {"Exact", "NotOlderThan"}:
        return [_unsupported("resourceVersionMatch", f'"{options.match}"', ("Exact", "NotOlderThan", ""))]
    if options.match == "Exact" and options.revision == 0:
        return [_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')]
    return []


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    if options.initial_events is None:
        if options.match:
            errors.append(
                _forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        return errors
    if options.match != "NotOlderThan":
        errors.append(_forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
        if options.match:
            errors.append(_unsupported("resourceVersionMatch", f'"{options.match}"', ("NotOlderThan",)))
    return errors


def resource_version_of(obj: JsonObject) -> int | None:
    """The resourceVersion an object was read at; None where it says none ("" or "0"). Raises StatusError."""
    text = find(obj, "metadata", "resourceVersion")
    if text is None or text in ("", "0"):
        return None
    if not isinstance(text, str) or not _DIGITS.fullmatch(text):
        raise status.internal(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)
