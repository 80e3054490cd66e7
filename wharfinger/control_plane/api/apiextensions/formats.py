"""The formats that a definition's schemas use and that the server does not check. Clients get a warning about them."""

from wharfinger.control_plane.api.apiextensions.form import Spec
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.objects.string_formats import known_format


def unrecognized_formats(spec: Spec) -> list[str]:
    """Return the names of unknown formats, each as often as it occurs, in the order of Go's walk."""
    found = []
    for schema in spec.schemas():
        for node in schemas.walked(schema):
            name = schemas.text(node, "format")
            if name and not known_format((schemas.text(node, "type"),), name):
                found.append(name)
    return found
