"""The options of a request: ``CreateOptions``, ``UpdateOptions``, ``PatchOptions``, ``DeleteOptions``, ``ListOptions``.

The options are parsed and validated here, with the errors of kube-apiserver (``metav1/validation``). Verbs do not check them
again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from wharfinger.control_plane.access.users import ADMINISTRATOR, User
from wharfinger.control_plane.objects.managed_field_rules import MANAGER_LIMIT, manager_errors
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_int, find_list
from wharfinger.kube.go_texts import read_number
from wharfinger.kube.selectors import SelectorError, parse_field_selector, parse_label_selector

Query = Mapping[str, tuple[str, ...]]
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")
_FALSE: Final = frozenset({"0", "false"})


class FieldValidation(StrEnum):
    """The treatment of requests with undeclared fields."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of creates, updates and patches."""

    manager: str
    dry_run: bool = False
    force: bool = False
    validation: FieldValidation = FieldValidation.WARN
    user: User = ADMINISTRATOR
    """The user of the request, for admission."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """The warnings for the client, which are collected during the write, and also sent if it fails."""
    asked: tuple[tuple[str, JsonValue], ...] = ()
    """The options that the client gave, by name. They are part of the request that policies and webhooks get."""
    own: bool = False
    """True for a write of the server itself, to which no admission policy applies."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of deletes; an empty value means that the option is not given."""

    dry_run: bool = False
    propagation: str = ""
    uid: str | None = None
    resource_version: str | None = None
    grace: int | None = None
    """The grace period of a Pod in seconds; None for the grace period in its spec."""
    not_orphaned: bool = False
    """True if the request has ``orphanDependents: false``; the answer is then 202 if the object still exists after the
    request."""
    warnings: list[str] = field(default_factory=list, compare=False)
    """The warnings for the client, which are collected during the delete."""
    user: User | None = None
    """The user of the request, for admission; None for a deletion by the server itself, to which no policy applies."""
    each: bool = False
    """True if the object is deleted as part of its collection, and not by its name."""
    asked: tuple[tuple[str, JsonValue], ...] = field(default=(), compare=False)
    """The options that the client gave, by name. They are part of the request that policies and webhooks get."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of lists and watches, with unparsed selectors; ``revision`` is None if none was given."""

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


def _first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _flag(query: Query, name: str) -> bool:
    """Parse a boolean in the form of Go clients; a parameter without a value is true."""
    return name in query and _first(query, name).lower() not in _FALSE


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


@lru_cache(maxsize=256)
def default_manager(user_agent: str) -> str:
    """Return the field manager of a request without ``fieldManager``: its User-Agent up to the first slash."""
    prefix = "".join(char for char in user_agent.partition("/")[0] if char.isprintable())
    return prefix.encode()[:MANAGER_LIMIT].decode(errors="ignore") or "unknown"


def parse_write_options(
    query: Query,
    user_agent: str,
    kind: str,
    *,
    apply: bool | None = None,
    user: User = ADMINISTRATOR,
    warnings: list[str] | None = None,
) -> WriteOptions:
    """Return the options of a write; ``kind`` is ``CreateOptions``, ``UpdateOptions`` or ``PatchOptions``. Raises StatusError.

    ``apply`` is true if a patch is an apply, and None if the request is not a patch. ``warnings`` is the list to which warnings
    are added.
    """
    collected = [] if warnings is None else warnings
    if not query and not apply:
        return WriteOptions(default_manager(user_agent), user=user, warnings=collected)
    manager, validation = _last(query, "fieldManager"), _last(query, "fieldValidation")
    errors: list[FieldError] = []
    if apply and not manager:
        errors.append(FieldError("fieldManager", "FieldValueRequired", "Required value: is required for apply patch"))
    if apply is False and "force" in query:
        errors.append(FieldError("force", "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch"))
    errors += manager_errors(manager, "fieldManager")
    dry_run, wrong = _dry_run(query.get("dryRun", ()))
    errors += wrong
    if validation not in _FIELD_VALIDATION:
        errors.append(_unsupported("fieldValidation", f'"{validation}"', _FIELD_VALIDATION))
    _refuse(kind, errors)
    return WriteOptions(
        manager or default_manager(user_agent),
        dry_run,
        _flag(query, "force"),
        FieldValidation(validation) if validation else FieldValidation.WARN,
        user,
        collected,
        _given(manager, validation, dry_run=dry_run),
    )


def _given(manager: str, validation: str, *, dry_run: bool) -> tuple[tuple[str, JsonValue], ...]:
    """Return the options that are given in a write request, as pairs of name and value."""
    given: dict[str, JsonValue] = {
        "dryRun": ["All"] if dry_run else None, "fieldManager": manager, "fieldValidation": validation,
    }  # fmt: skip
    return tuple((name, value) for name, value in given.items() if value)


def parse_delete_options(query: Query, body: JsonObject | None) -> DeleteOptions:
    """Return the options of a delete, from its body (``DeleteOptions``) or, without a body, from its parameters. Raises
    StatusError.
    """
    given: JsonObject = {} if body is None else body
    if body is None:
        if (grace := _integer(query, "gracePeriodSeconds")) is not None:
            given["gracePeriodSeconds"] = grace
        if "orphanDependents" in query:
            given["orphanDependents"] = _flag(query, "orphanDependents")
        if "propagationPolicy" in query:
            given["propagationPolicy"] = _last(query, "propagationPolicy")
        given["dryRun"] = list(query.get("dryRun", ()))
        given["preconditions"] = {name: value for name in ("uid", "resourceVersion") if (value := _first(query, name))}
    return _delete_options(given)


def _delete_options(given: JsonObject) -> DeleteOptions:
    errors: list[FieldError] = []
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    propagation = policy if isinstance(policy, str) else ""
    if policy is not None and orphan is not None:
        message = f'Invalid value: "{propagation}": orphanDependents and deletionPropagation cannot be both set'
        errors.append(FieldError("propagationPolicy", "FieldValueInvalid", message))
    if policy is not None and propagation not in _PROPAGATION:
        errors.append(_unsupported("propagationPolicy", quoted(propagation), (*_PROPAGATION, "nil")))
    dry_run, wrong = _dry_run([str(item) for item in find_list(given, "dryRun")])
    _refuse("DeleteOptions", [*errors, *wrong])
    if isinstance(orphan, bool):
        propagation = "Orphan" if orphan else "Background"
    return DeleteOptions(
        dry_run,
        propagation,
        _optional(given, "preconditions", "uid"),
        _optional(given, "preconditions", "resourceVersion"),
        None if given.get("gracePeriodSeconds") is None else find_int(given, "gracePeriodSeconds"),
        orphan is False,
        asked=tuple((name, value) for name, value in given.items() if value not in (None, [], {})),
    )


def _optional(value: JsonObject, *path: str) -> str | None:
    found = find(value, *path)
    return found if isinstance(found, str) else None


def parse_list_options(
    query: Query, *, watch: bool = False, judge: Callable[[str], object] | None = None
) -> ListOptions:
    """Return the options of a list, or of a watch if ``watch`` is true or the query requests one. Raises StatusError.

    ``judge`` is called with the field selector, to refuse fields that are not supported. ``judge`` is called after the syntax
    of selectors is checked, and before the resourceVersion is checked.
    """
    asked = _flag(query, "watch")  # without this parameter, a watch that its path requests is checked like a list
    limit, timeout = _integer(query, "limit"), _integer(query, "timeoutSeconds")
    version, match, token = (_first(query, name) for name in ("resourceVersion", "resourceVersionMatch", "continue"))
    labels, fields = _first(query, "labelSelector"), _first(query, "fieldSelector")
    if labels or fields:
        _check_selectors(labels, fields)
    initial = _flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    if asked and initial is None and not match and version in {"", "0"}:
        initial, match = True, "NotOlderThan"
    errors = _watch_errors(match, token, initial) if asked else _list_errors(match, token, initial, version)
    _refuse("ListOptions", errors)
    if fields and judge is not None:
        judge(fields)
    return ListOptions(
        label_selector=labels,
        field_selector=fields,
        limit=max(limit or 0, 0),
        continue_token=token,
        revision=parse_revision(version, listed=not (watch or asked)),
        match=match,
        watch=watch or asked,
        bookmarks=_flag(query, "allowWatchBookmarks"),
        initial_events=initial,
        timeout_seconds=timeout,
    )


def _check_selectors(labels: str, fields: str) -> None:
    """Refuse an invalid selector. Raises StatusError (400)."""
    try:
        parse_label_selector(labels)
        parse_field_selector(fields, lambda _path: True)
    except SelectorError as error:
        raise status.bad_request(str(error)) from error


def asks_to_watch(query: Query) -> bool:
    """Return whether the query requests a watch instead of a list."""
    return _flag(query, "watch")


def asked_revision(query: Query) -> int | None:
    """Return the minimum resourceVersion at which an object is to be read; None if the query states none. Raises
    StatusError.
    """
    return parse_revision(_first(query, "resourceVersion"))


def _integer(query: Query, name: str) -> int | None:
    if name not in query:
        return None
    text = _first(query, name)
    number, problem = read_number(text, signed=True)
    if problem:
        raise status.bad_request(f"strconv.ParseInt: parsing {quoted(text)}: {problem}")
    return number


def parse_revision(text: str, *, listed: bool = False) -> int | None:
    """Return the resourceVersion that a query contains; None for "". Raises StatusError, with the code 400 for a list
    (``listed``) and 500 otherwise.
    """
    if not text:
        return None
    number, problem = read_number(text)
    if not problem:
        return number
    message = f"resourceVersion: Invalid value: {quoted(text)}: strconv.ParseUint: parsing {quoted(text)}: {problem}"
    raise status.bad_request(f"invalid resource version: {message}") if listed else status.internal(message)


def _forbidden(message: str) -> FieldError:
    return FieldError("resourceVersionMatch", "FieldValueForbidden", f"Forbidden: {message}")


_NOT_WITH_TOKEN: Final = "resourceVersionMatch is forbidden when continue is provided"  # noqa: S105 - a message


def _list_errors(match: str, token: str, initial: bool | None, version: str) -> list[FieldError]:  # noqa: FBT001
    errors = []
    if match and not version:
        errors.append(_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and token:
        errors.append(_forbidden(_NOT_WITH_TOKEN))
    if match not in {"", "Exact", "NotOlderThan"}:
        errors.append(_unsupported("resourceVersionMatch", quoted(match), ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        errors.append(_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if initial is not None:
        message = "Forbidden: sendInitialEvents is forbidden for list"
        errors.append(FieldError("sendInitialEvents", "FieldValueForbidden", message))
    return errors


def _watch_errors(match: str, token: str, initial: bool | None) -> list[FieldError]:  # noqa: FBT001
    errors = []
    if initial is not None and match != "NotOlderThan":
        errors.append(_forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and initial is None:
        errors.append(_forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    if match not in {"", "NotOlderThan"}:
        errors.append(_unsupported("resourceVersionMatch", quoted(match), ("NotOlderThan",)))
    if match and token:
        errors.append(_forbidden(_NOT_WITH_TOKEN))
    return errors


def resource_version_of(obj: JsonObject) -> int | None:
    """Return the resourceVersion that an object states, or None for "" and "0". Raises StatusError."""
    text = find(obj, "metadata", "resourceVersion")
    if text is None or text in ("", "0"):
        return None
    if not isinstance(text, str):
        raise status.internal(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    number, problem = read_number(text)
    if problem:
        raise status.internal(f'strconv.ParseUint: parsing "{text}": {problem}')
    return number
