"""What all reviews begin with: the body as an object of its kind, with who wrote it."""

from wharfinger.cluster.control_plane.creation import with_defaults
from wharfinger.cluster.control_plane.intake import accepted
from wharfinger.cluster.control_plane.managed_fields import record_update
from wharfinger.cluster.control_plane.preparation import without_status
from wharfinger.cluster.control_plane.virtual import Asked
from wharfinger.formats.json_value import JsonObject


def reviewed(asked: Asked, *, subresource: str = "") -> JsonObject:
    """The review that was sent, without a status. Raises StatusError (400)."""
    obj = accepted(asked.served, asked.body, asked.options.validation).obj
    obj = with_defaults(asked.served, without_status(obj))
    return record_update(
        None,
        obj,
        manager=asked.options.manager,
        subresource=subresource,
        now=asked.backend.now(),
        lists=asked.served.version.lists,
    )
