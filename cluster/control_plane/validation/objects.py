"""What is wrong with an object that is about to be stored, by the rules of metadata and those of its kind."""

from typing import Final

from wharfinger.cluster.control_plane.kinds import Kind
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.core import CORE_RULES
from wharfinger.cluster.control_plane.validation.definitions import DEFINITION_RULES
from wharfinger.cluster.control_plane.validation.groups import GROUP_RULES
from wharfinger.cluster.control_plane.validation.metadata import metadata_errors, metadata_update_errors
from wharfinger.cluster.control_plane.validation.pods import POD_RULES
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.cluster.control_plane.validation.workloads import WORKLOAD_RULES
from wharfinger.formats.json_value import JsonObject

RULES: Final[dict[str, Rules]] = {**CORE_RULES, **POD_RULES, **WORKLOAD_RULES, **GROUP_RULES, **DEFINITION_RULES}
"""By ``Kind.group_kind`` (``Deployment.apps``)."""
_NONE: Final = Rules()


def validate(kind: Kind, obj: JsonObject) -> list[FieldError]:
    """Everything wrong with a new object."""
    return metadata_errors(kind, obj) + RULES.get(kind.group_kind, _NONE).create(obj)


def validate_update(kind: Kind, new: JsonObject, old: JsonObject, subresource: str = "") -> list[FieldError]:
    """Everything wrong with the new state of a stored object; ``subresource`` may be ``status``."""
    rules = RULES.get(kind.group_kind, _NONE)
    own = rules.status(new, old) if subresource == "status" else rules.update(new, old)
    return metadata_errors(kind, new) + own


def validate_identity(kind: Kind, new: JsonObject, old: JsonObject) -> list[FieldError]:
    """What an update may not change in metadata, judged before the server carries over what it owns."""
    return metadata_update_errors(kind, new, old)


def warnings_of(kind: Kind, new: JsonObject, old: JsonObject | None) -> tuple[str, ...]:
    """What a client is told of an object that was taken; ``old`` is None for a new one."""
    return tuple(RULES.get(kind.group_kind, _NONE).warnings(new, old))
