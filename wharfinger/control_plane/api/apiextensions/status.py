"""The status of a CustomResourceDefinition, as kube-apiserver's controllers for these definitions write it. Pure.

A name is accepted if no other definition of the group has it. Once all names of a definition were accepted, the definition is
permanently established. It is served under its presently accepted names. A condition keeps its transition time until its status
changes.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from wharfinger.control_plane.api.apiextensions.form import schema_of
from wharfinger.control_plane.api.apiextensions.names import approval
from wharfinger.control_plane.api.apiextensions.structure import conversion_problem, structure_errors
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.status import aggregated
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    checksum,
    find,
    find_list,
    find_object,
)
from wharfinger.kube.times import format_time

NEVER_ESTABLISHED: Final = "wharfinger.dev/never-established"
NON_STRUCTURAL: Final = "NonStructuralSchema"
_MAX_CACHED: Final = 1_024
_CACHED: Final[dict[str, tuple[str, str] | None]] = {}
"""The cached results of :func:`_violations`. Each key is the checksum of a CRD's versions, which may be a megabyte long."""
_RESOURCES: Final = ("plural", "singular")
_KINDS: Final = ("kind", "listKind")
_REASONS: Final = {
    "plural": "PluralConflict", "singular": "SingularConflict", "kind": "KindConflict", "listKind": "ListKindConflict",
}  # fmt: skip


def settled_status(
    definition: JsonObject, others: Iterable[JsonObject], now: datetime, *, touched: bool = False
) -> JsonObject:
    """Return the status of a definition after all controllers have done their work.

    ``others`` are the other definitions of its group. The annotation NEVER_ESTABLISHED prevents a definition from being
    established: ``true`` permanently, ``until-touched`` until the definition is ``touched``. ``until-touched`` simulates
    a definition that an API server did not establish because the server was restarted.
    """
    status = find_object(definition, "status")
    asked, accepted = find_object(definition, "spec", "names"), find_object(status, "acceptedNames")
    conditions = _conditions(status)
    conditions = _with_condition(conditions, _approval(definition), now)
    kept_back = _is_kept_back(definition, touched=touched)
    if asked != accepted or not any(item.get("type") == "NamesAccepted" for item in conditions):
        accepted, wrong = _accepted_names(asked, accepted, list(others))
        conditions = _with_name_conditions(conditions, wrong, now, kept_back=kept_back)
    elif _is_installing(conditions) and not kept_back:
        conditions = _with_name_conditions(conditions, None, now, kept_back=False)
    conditions = _with_structure_condition(conditions, _violations(find_list(definition, "spec", "versions")), now)
    return {**status, "conditions": [*conditions], "acceptedNames": accepted}


def _is_kept_back(definition: JsonObject, *, touched: bool) -> bool:
    said = find_object(definition, "metadata", "annotations").get(NEVER_ESTABLISHED)
    return said == "true" or (said == "until-touched" and not touched)


def _is_installing(conditions: list[JsonObject]) -> bool:
    return any(item.get("type") == "Established" and item.get("reason") == "Installing" for item in conditions)


def is_established(definition: JsonObject) -> bool:
    """Return whether a definition is established: whether its kind is served."""
    return _holds(_conditions(find_object(definition, "status")), "Established")


def terminating_status(definition: JsonObject, reason: str, message: str, now: datetime) -> JsonObject:
    """Return the status with the condition Terminating."""
    status = find_object(definition, "status")
    condition = _condition("Terminating", "True", reason, message)
    return {**status, "conditions": [*_with_condition(_conditions(status), condition, now)]}


def _conditions(status: JsonObject) -> list[JsonObject]:
    return [item for item in find_list(status, "conditions") if isinstance(item, dict)]


def _holds(conditions: list[JsonObject], type_: str) -> bool:
    return any(item.get("type") == type_ and item.get("status") == "True" for item in conditions)


def _condition(type_: str, state: str, reason: str, message: str) -> JsonObject:
    return {"type": type_, "status": state, "lastTransitionTime": None, "reason": reason, "message": message}


def _with_condition(conditions: list[JsonObject], new: JsonObject | None, now: datetime) -> list[JsonObject]:
    """Return the conditions with ``new`` in place of the condition of its type, or at the end; unchanged if ``new`` is None."""
    if new is None:
        return conditions
    known = next((item for item in conditions if item.get("type") == new["type"]), None)
    same = known is not None and known.get("status") == new["status"]
    timed = {**new, "lastTransitionTime": known["lastTransitionTime"] if known and same else format_time(now)}
    if known is None:
        return [*conditions, timed]
    return [timed if item is known else item for item in conditions]


def _accepted_names(
    asked: JsonObject, accepted: JsonObject, others: list[JsonObject]
) -> tuple[JsonObject, tuple[str, str] | None]:
    """Return the names that a definition may have now. If some names are refused, also return the reason and the message,
    otherwise None.
    """
    held = [find_object(other, "status", "acceptedNames") for other in others]
    resources = {str(names.get(name) or "") for names in held for name in _RESOURCES}
    resources |= {short for names in held for short in schemas.strings(names, "shortNames")}
    kinds = {str(names.get(name) or "") for names in held for name in _KINDS}
    wrong: tuple[str, str] | None = None
    taken: JsonObject = {}
    for name, used in (("plural", resources), ("singular", resources)):
        taken[name], wrong = _accepted_name(name, asked, accepted, used, wrong)
    mine = schemas.strings(accepted, "shortNames")
    short_names = schemas.strings(asked, "shortNames")
    clashes = [f'"{short}" is already in use' for short in short_names if short not in mine and short in resources]
    if clashes:
        wrong = ("ShortNamesConflict", aggregated(clashes))
    taken["shortNames"] = [*(mine if clashes else short_names)]
    for name in _KINDS:
        taken[name], wrong = _accepted_name(name, asked, accepted, kinds, wrong)
    taken["categories"] = asked.get("categories")
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    needed = ("plural", "kind")
    return {name: taken[name] or "" for name in order if taken[name] or name in needed}, wrong


def _accepted_name(
    name: str, asked: JsonObject, accepted: JsonObject, used: set[str], wrong: tuple[str, str] | None
) -> tuple[JsonValue, tuple[str, str] | None]:
    """Return the accepted value of one name, and a problem (reason and message): the problem with this name or, if it has none,
    ``wrong``, the problem with an earlier name. None means no problem.
    """
    wanted, mine = asked.get(name) or "", accepted.get(name) or ""
    if wanted == mine or wanted not in used:
        return wanted, wrong
    return mine, (_REASONS[name], f'"{wanted}" is already in use')


def _with_name_conditions(
    conditions: list[JsonObject], wrong: tuple[str, str] | None, now: datetime, *, kept_back: bool
) -> list[JsonObject]:
    if wrong is None:
        conditions = _with_condition(
            conditions, _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"), now
        )
    else:
        conditions = _with_condition(conditions, _condition("NamesAccepted", "False", *wrong), now)
    if _holds(conditions, "Established"):
        return conditions
    if wrong is None:
        message = "the initial names have been accepted"
        if kept_back:
            return _with_condition(conditions, _condition("Established", "False", "Installing", message), now)
        return _with_condition(conditions, _condition("Established", "True", "InitialNamesAccepted", message), now)
    if any(item.get("type") == "Established" for item in conditions):
        return conditions
    return _with_condition(
        conditions, _condition("Established", "False", "NotAccepted", "not all names are accepted"), now
    )


def _approval(definition: JsonObject) -> JsonObject | None:
    reason, message = approval(definition)
    if not reason:
        return None
    state = "True" if reason == "ApprovedAnnotation" else "False"
    return _condition("KubernetesAPIApprovalPolicyConformant", state, reason, message)


def _violations(versions: list[JsonValue]) -> tuple[str, str] | None:
    """Return reason and message why a schema of these versions is not structural; None if all schemas are structural.

    Only definitions that an older server accepted can have a schema that is not structural. The result is cached, because the
    status of a definition is computed again after each change in its group.
    """
    digest = checksum(versions)
    if digest not in _CACHED:
        if len(_CACHED) >= _MAX_CACHED:
            _CACHED.clear()
        _CACHED[digest] = _new_violations(versions)
    return _CACHED[digest]


def _new_violations(versions: list[JsonValue]) -> tuple[str, str] | None:
    said: list[str] = []
    for index, version in enumerate(versions):
        schema = schema_of(version) if isinstance(version, dict) else None
        if schema is None:
            continue
        problem = conversion_problem(schema)
        if problem:
            why = f"failed to check validation schema for version {find(version, 'name')}: {problem}"
            return "StructuralError", why
        said += map(str, structure_errors(schema, f"spec.versions[{index}].schema.openAPIV3Schema"))
    return ("Violations", aggregated(said)) if said else None


def _with_structure_condition(
    conditions: list[JsonObject], wrong: tuple[str, str] | None, now: datetime
) -> list[JsonObject]:
    if wrong is None:
        return [item for item in conditions if item.get("type") != NON_STRUCTURAL]
    state = "True" if wrong[0] == "Violations" else "Unknown"
    return _with_condition(conditions, _condition(NON_STRUCTURAL, state, *wrong), now)
