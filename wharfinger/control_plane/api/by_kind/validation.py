"""The validation of objects that are about to be stored, with the rules for metadata and the rules of the kind."""

from typing import Final

from wharfinger.control_plane.api.apiextensions.validation import DEFINITION_RULES
from wharfinger.control_plane.api.by_kind.other_groups_validation import GROUP_RULES
from wharfinger.control_plane.api.by_kind.workload_validation import WORKLOAD_RULES
from wharfinger.control_plane.api.core.namespaces import finalize_errors
from wharfinger.control_plane.api.core.pods.validation import POD_RULES
from wharfinger.control_plane.api.core.validation import CORE_RULES
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.metadata import created_errors, finalizer_warnings, metadata_rules, updated_errors
from wharfinger.control_plane.objects.object_metadata import with_metadata
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

RULES: Final[dict[str, Rules]] = {**CORE_RULES, **POD_RULES, **WORKLOAD_RULES, **GROUP_RULES, **DEFINITION_RULES}
"""The rules by ``Kind.group_kind`` (``Deployment.apps``)."""
_NONE: Final = Rules()
_IDENTITY: Final = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate(kind: Kind, obj: JsonObject) -> list[FieldError]:
    """Return all errors of a new object."""
    return created_errors(kind, obj, lambda: RULES.get(kind.group_kind, _NONE).create(obj))


def validate_update(
    kind: Kind, new: JsonObject, old: JsonObject, subresource: str = "", given: JsonObject | None = None
) -> list[FieldError]:
    """Return all errors of the new state of a stored object; ``subresource`` may be ``status`` or ``finalize``.

    ``given`` is the metadata that the client sent, while ``new`` has the values that the server keeps. The client may not
    change the fields in ``_IDENTITY``, such as the UID.
    """
    rules, order = RULES.get(kind.group_kind, _NONE), metadata_rules(kind)
    if given:
        identity = {name: given[name] for name in _IDENTITY if given.get(name) not in (None, "")}
        if find(old, "metadata", "deletionTimestamp") is not None:
            identity.pop("deletionTimestamp", None)
        new = with_metadata(new, identity) if identity else new
    if subresource == "status":
        return updated_errors(kind, new, old, order.status, lambda: rules.status(new, old))
    if subresource == "finalize":
        return updated_errors(kind, new, old, "UO", lambda: finalize_errors(new))
    own = rules.subresources.get(subresource, rules.update)
    return updated_errors(kind, new, old, order.update, lambda: own(new, old))


def warnings_of(kind: Kind, new: JsonObject, old: JsonObject | None, subresource: str = "") -> tuple[str, ...]:
    """Return the warnings for the client about an accepted object; ``old`` is None for a new object."""
    if kind.custom:
        return tuple(finalizer_warnings(new, old))
    rules = RULES.get(kind.group_kind, _NONE)
    if subresource:
        return tuple(rules.status_warnings(new, old)) if subresource == "status" else ()
    return tuple(rules.warnings(new, old))
