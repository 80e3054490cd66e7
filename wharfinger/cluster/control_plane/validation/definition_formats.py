"""Formats in a definition's schemas that the server does not check, of which it warns."""

from wharfinger.cluster.control_plane.custom import schemas
from wharfinger.cluster.control_plane.custom.formats import known_format
from wharfinger.cluster.control_plane.validation.definition_form import Spec


def unrecognized_formats(spec: Spec) -> list[str]:
    """Their names, as often as they stand there, in the order of Go's walk."""
    found = []
    for schema in spec.schemas():
        for node in schemas.walked(schema):
            name = schemas.text(node, "format")
            if name and not known_format((schemas.text(node, "type"),), name):
                found.append(name)
    return found
