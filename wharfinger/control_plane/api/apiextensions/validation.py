"""The validation of CustomResourceDefinitions (``apiextensions/validation``), combined from the other modules of this folder.

A definition is validated in its internal form (:mod:`~wharfinger.control_plane.api.apiextensions.form`): for example, a schema
that all versions share is in ``spec.validation``. An update skips checks that the old definition already violated
(:class:`Asked`), so that later server versions can be stricter.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.api.apiextensions.defaults import has_unpruned_defaults
from wharfinger.control_plane.api.apiextensions.form import Spec, schema_of, shown_versions, spec_of
from wharfinger.control_plane.api.apiextensions.formats import unrecognized_formats
from wharfinger.control_plane.api.apiextensions.lists import key_errors, set_item_errors
from wharfinger.control_plane.api.apiextensions.names import (
    approval_errors,
    column_errors,
    conversion_errors,
    deprecation_errors,
    label_error,
    names_errors,
    subresource_errors,
)
from wharfinger.control_plane.api.apiextensions.schemas import TYPES, Leniency
from wharfinger.control_plane.api.apiextensions.selectable_fields import TooMany, selectable_errors
from wharfinger.control_plane.api.apiextensions.whole_schema import Asked, whole_errors
from wharfinger.control_plane.custom.correlation import equal
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.kind import DEFINITION
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import invalid, not_supported, quoted, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

_SCOPES: Final = ("Cluster", "Namespaced")


@dataclass(frozen=True, slots=True)
class _SkippedChecks:
    """The checks that an update skips, or makes less strict, because of the old definition."""

    schemas_needed: bool = True
    reviews_known: bool = True
    too_many: TooMany = frozenset()
    same_schemas: frozenset[str] = frozenset()


def definition_errors(definition: JsonObject) -> list[FieldError]:
    """Return all errors of a new definition."""

    def named(name: str, _prefix: bool) -> list[str]:  # noqa: FBT001 - the shape of a rule of names
        wanted = f"{find(definition, 'spec', 'names', 'plural') or ''}.{find(definition, 'spec', 'group') or ''}"
        return subdomain_problems(name) + ([] if name == wanted else ['must be spec.names.plural+"."+spec.group'])

    errors = core_meta_errors(definition, namespaced=False, name=named, finalizers=False)
    errors += _spec_errors(spec_of(definition), Asked(), _SkippedChecks())
    return (
        errors + _status_errors(definition) + stored_errors(definition) + _approval_and_pruning_errors(definition, None)
    )


def update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return all errors of a changed definition."""
    spec, before = spec_of(new), spec_of(old)
    established = any(
        find(item, "type") == "Established" and find(item, "status") == "True"
        for item in schemas.values(schemas.child(old, "status") or {}, "conditions")
    )
    errors = _spec_errors(spec, _asked(before), _skipped_checks(new, old, before))
    paths = [("scope",), ("names", "kind")] if established else []
    for path in (*paths, ("group",), ("names", "plural")):
        value = find(spec.document, *path)
        if value != find(before.document, *path):
            errors.append(invalid(f"spec.{'.'.join(path)}", value or "", "field is immutable"))
    return errors + _status_errors(new) + stored_errors(new) + _approval_and_pruning_errors(new, old)


def _approval_and_pruning_errors(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    errors = approval_errors(new, old)
    if spec_of(new).preserves and not (old is not None and spec_of(old).preserves):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, why))  # noqa: FBT003 - the value that is wrong
    return errors


def _asked(before: Spec) -> Asked:
    """Return the checks of the schemas in an update. ``before`` is the old definition; checks that its schemas fail are left
    out.
    """
    old = before.schemas()

    def lacking(node: JsonObject) -> bool:
        return schemas.text(node, "type") not in {"", *TYPES}

    return Asked(
        pruned=not any(has_unpruned_defaults(schema) for schema in old),
        lenient=Leniency(
            types=any(schemas.has(schema, lacking) for schema in old),
            set_items=any(
                schemas.has(schema, lambda node: schemas.list_type(node) == "set" and bool(set_item_errors(node, "")))
                for schema in old
            ),
            list_keys=any(schemas.has(schema, lambda node: bool(key_errors(node, ""))) for schema in old),
        ),
    )


def _skipped_checks(new: JsonObject, old: JsonObject, before: Spec) -> _SkippedChecks:
    reviews = schemas.strings(schemas.child(schemas.child(before.document, "conversion") or {}, "webhook") or {},
                              "conversionReviewVersions")  # fmt: skip
    was = {schemas.text(item, "name"): item for item in schemas.branches(schemas.child(old, "spec") or {}, "versions")}
    now = {schemas.text(item, "name"): item for item in schemas.branches(schemas.child(new, "spec") or {}, "versions")}
    same = {name for name in now.keys() & was.keys() if equal(now[name].get("schema"), was[name].get("schema"))}
    crowded = {
        name
        for name in now.keys() & was.keys()
        if len(schemas.values(was[name], "selectableFields")) > 8
        and equal(now[name].get("selectableFields"), was[name].get("selectableFields"))
    }
    return _SkippedChecks(
        schemas_needed=all(schema_of(item) is not None for item in was.values()),
        reviews_known=not reviews or bool({"v1", "v1beta1"} & set(reviews)),
        too_many=frozenset(crowded),
        same_schemas=frozenset(same),
    )


def _spec_errors(spec: Spec, asked: Asked, skipped: _SkippedChecks) -> list[FieldError]:
    errors = _group_errors(spec.group)
    scope = schemas.text(spec.document, "scope")
    if not scope:
        errors.append(required("spec.scope"))
    elif scope not in _SCOPES:
        errors.append(not_supported("spec.scope", scope, _SCOPES))
    if skipped.schemas_needed and schema_of(spec.shared) is None:
        errors += [
            required(f"spec.versions[{index}].schema.openAPIV3Schema")
            for index, version in enumerate(spec.versions)
            if schema_of(version) is None
        ]
    if spec.preserves and any(
        schemas.has(schema, lambda node: node.get("default") is not None) for schema in spec.schemas()
    ):
        why = "must be false in order to use defaults in the schema"
        errors.append(invalid("spec.preserveUnknownFields", True, why))  # noqa: FBT003 - the value that is wrong
    for index, version in enumerate(spec.versions):
        errors += _version_errors(spec, index, version, asked, skipped)
    errors += _versions_errors(spec)
    names = spec.names
    errors += [
        required(f"spec.names.{name}")
        for name in ("plural", "singular", "kind", "listKind")
        if not schemas.text(names, name)
    ]
    errors += names_errors(names, "spec.names")
    errors += _shared_errors(spec, asked, skipped)
    strategy = find(spec.document, "conversion", "strategy")
    if spec.preserves and strategy not in {None, "None"}:
        errors.append(
            invalid("spec.conversion.strategy", strategy, "must be None if spec.preserveUnknownFields is true")
        )
    return errors + conversion_errors(
        spec.document.get("conversion"), "spec.conversion", recognized=skipped.reviews_known
    )


def _group_errors(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    problems = subdomain_problems(group)
    if problems:
        return [invalid("spec.group", group, ",".join(problems))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _version_errors(
    spec: Spec, index: int, version: JsonObject, asked: Asked, skipped: _SkippedChecks
) -> list[FieldError]:
    path, name = f"spec.versions[{index}]", schemas.text(version, "name")
    errors = label_error(f"{path}.name", name)
    errors += deprecation_errors(version, path)
    subresources = version.get("subresources") or spec.shared.get("subresources")
    schema = schema_of(version)
    if schema is not None:
        asked = asked.unchanged() if name in skipped.same_schemas else asked
        has_status = find(subresources, "status") is not None
        errors += whole_errors(schema, f"{path}.schema", asked, has_status=has_status)
    errors += subresource_errors(version.get("subresources"), path)
    errors += column_errors(schemas.branches(version, "additionalPrinterColumns"), path)
    fields = schemas.branches(version, "selectableFields")
    if fields:
        # As upstream, a schema that all versions share is not considered here.
        errors += selectable_errors(fields, schema, path, crowded=name in skipped.too_many)
    return errors


def _versions_errors(spec: Spec) -> list[FieldError]:
    names = [schemas.text(version, "name") for version in spec.versions]
    errors: list[FieldError] = []
    if len(set(names)) != len(names):
        errors.append(invalid("spec.versions", shown_versions(spec), "must contain unique version names"))
    if sum(schemas.flag(version, "storage") for version in spec.versions) != 1:
        why = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", shown_versions(spec), why))
    return errors + (label_error("spec.version", names[0]) if names and names[0] else [])


def _shared_errors(spec: Spec, asked: Asked, skipped: _SkippedChecks) -> list[FieldError]:
    """Return the errors of the fields that all versions share."""
    errors: list[FieldError] = []
    schema = schema_of(spec.shared)
    has_status = any(find(holder, "subresources", "status") is not None for holder in (spec.shared, *spec.versions))
    if schema is not None:
        first = schemas.text(spec.versions[0], "name")
        asked = asked.unchanged() if first in skipped.same_schemas else asked
        errors += whole_errors(schema, "spec.validation", asked, has_status=has_status)
    errors += subresource_errors(spec.shared.get("subresources"), "spec")
    errors += column_errors(schemas.branches(spec.shared, "additionalPrinterColumns"), "spec")
    fields = schemas.branches(spec.shared, "selectableFields")
    if fields:
        names = {schemas.text(version, "name") for version in spec.versions}
        errors += selectable_errors(fields, schema, "spec", crowded=names <= skipped.too_many, shared=True)
    return errors


def _status_errors(definition: JsonObject) -> list[FieldError]:
    accepted = schemas.child(schemas.child(definition, "status") or {}, "acceptedNames") or {}
    return names_errors(accepted, "status.acceptedNames")


def stored_errors(definition: JsonObject) -> list[FieldError]:
    """Return the errors of ``storedVersions``: versions in which objects may be stored cannot be removed."""
    path = "status.storedVersions"
    stored = schemas.strings(schemas.child(definition, "status") or {}, "storedVersions")
    if not stored:
        return [invalid(path, None, "must have at least one stored version")]
    versions = spec_of(definition).versions
    names = {schemas.text(version, "name") for version in versions}
    shown: list[JsonValue] = [*stored]
    errors: list[FieldError] = []
    unmet = set(stored)  # each name counts once, so a second storage version with the same name is an error
    for name, version in ((schemas.text(version, "name"), version) for version in versions):
        if schemas.flag(version, "storage") and name not in unmet:
            errors.append(invalid(path, shown, f"must have the storage version {name}"))
        unmet.discard(name)
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            errors.append(invalid(f"{path}[{index}]", name, why))
    return errors


def warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return warnings about formats that are not checked and that the old definition did not have."""
    known = set() if old is None else set(unrecognized_formats(spec_of(old)))
    return [f"unrecognized format {quoted(name)}" for name in unrecognized_formats(spec_of(new)) if name not in known]


DEFINITION_RULES: Final[dict[str, Rules]] = {
    DEFINITION: Rules(
        create=definition_errors,
        update=update_errors,
        status=lambda new, _old: _status_errors(new),
        warnings=warnings,
    ),
}
