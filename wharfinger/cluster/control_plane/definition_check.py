"""Custom resource definitions, checked as this server checks them, for whoever has none at hand."""

from functools import cache

from wharfinger.cluster.control_plane.builtin_kinds import BUILTIN_KINDS
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.creation import with_defaults
from wharfinger.cluster.control_plane.intake import accepted
from wharfinger.cluster.control_plane.kinds import DEFINITION
from wharfinger.cluster.control_plane.options import FieldValidation
from wharfinger.cluster.control_plane.preparation import prepared
from wharfinger.cluster.control_plane.status import StatusError
from wharfinger.cluster.control_plane.validation.objects import validate
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject


def refused_fields(document: JsonObject) -> list[tuple[str, str]]:
    """Return what the server would refuse of a new definition: fields, each with a sentence; ``spec`` where it is none at all.

    Fields that the server would leave out are not told. Of ``status`` nothing is: the server writes it, from the spec.
    """
    served = _served()
    try:
        wanted = accepted(served, document, FieldValidation.IGNORE).obj
        errors = validate(served.kind, prepared(served.kind, with_defaults(served, wanted)))
    except (FormatError, StatusError) as error:
        return [("spec", str(error))]
    return [(error.field, str(error)) for error in errors if not error.field.startswith("status.")]


@cache
def _served() -> Served:
    kind = next(kind for kind in BUILTIN_KINDS if kind.group_kind == DEFINITION)
    return Served(kind, kind.versions[0])
