"""The formats that the schemas of a CustomResourceDefinition use and that the server does not check; clients get a warning."""

from wharfinger.control_plane.api.apiextensions.form import Spec
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.objects.string_formats import known_format


def unrecognized_formats(spec: Spec) -> list[str]:
    """Return the names of unknown formats, each as often as it occurs, in the order in which kube-apiserver finds them."""
    found = []
    for schema in spec.schemas():
        for node in schemas.walked(schema):
            name = schemas.text(node, "format")
            if name and not known_format((schemas.text(node, "type"),), name):
                found.append(name)
    return found
