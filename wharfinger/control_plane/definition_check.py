"""The check of CustomResourceDefinitions by the rules of the embedded control plane, without running the control plane."""

from functools import cache

from wharfinger.control_plane.api.by_kind.validation import validate
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.kinds.kind import DEFINITION
from wharfinger.control_plane.verbs.creation import with_defaults
from wharfinger.control_plane.verbs.intake import accepted
from wharfinger.control_plane.verbs.options import FieldValidation
from wharfinger.control_plane.verbs.preparation import prepared
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject


def refused_fields(document: JsonObject) -> list[tuple[str, str]]:
    """Return the fields of a new definition that the server would refuse, each with an explanation.

    If the document cannot be decoded as a definition, the only field is ``spec``. Fields that the server would prune are
    not reported, nor is ``status``, which the server derives from the spec.
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
