"""The errors for bodies that cannot be read, with the messages of kube-apiserver's decoders."""

from typing import Final

from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body
from wharfinger.control_plane.wire.decoding import go_type_of
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.formats.json.value import JsonObject, JsonValue

KIND_MISSING: Final = "Object 'Kind' is missing in "
KIND_FIELDS: Final = {"apiversion": "apiVersion", "kind": "kind"}
"""The fields that identify the kind of a body; their names are matched case-insensitively."""
REPEATS: Final = "yaml: unmarshal errors:\n"
_KIND_FINDER: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
"""The Go type into which kube-apiserver first decodes a body, to find its kind. Messages about bodies without an object name
this type.
"""


class RefusedError(status.StatusError):
    """The 400 for a refused body; ``why`` is the decoder's own message, without the kind."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(400, "BadRequest", message)
        self.why = why


class WrongKindError(status.StatusError):
    """The 422 for a custom object whose body names another kind, or whose apiVersion is wrong after a patch.

    In an update, some other errors are reported before this one.
    """

    def __init__(self, obj: JsonObject, refusal: status.StatusError) -> None:
        super().__init__(refusal.code, refusal.reason, refusal.message, refusal.details)
        self.obj = obj


def refused(kind: str, version: str, why: str, wanted: str = "") -> RefusedError:
    """Return the 400 for a body that names ``kind`` and ``version`` and cannot be read. ``wanted`` is the expected kind if the
    body names another kind.
    """
    return RefusedError(f'{kind} in version "{version}" cannot be handled as a {wanted or kind}: {why}', why)


def unrecognized(kind: str, complaint: str, body: Body) -> RefusedError:
    """Return the 400 for a body without a kind."""
    said = f"the object provided is unrecognized (must be of type {kind}): {complaint} ({body.summary})"
    return RefusedError(said, complaint)


def unreadable(kind: str, complaint: str, body: Body) -> RefusedError:
    """Return the 400 for a body that is not valid in its encoding."""
    if body.encoding is Encoding.JSON:
        complaint = f"couldn't get version/kind; json parse error: {complaint}"
    return unrecognized(kind, complaint, body)


def kind_complaint(value: JsonValue) -> str:
    """Return the reason why the kind of a body cannot be read, or ""."""
    prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if value is None:
        return ""
    if not isinstance(value, dict):
        return f"{prefix} {go_type_of(value)} into Go value of type {_KIND_FINDER}"
    for name, item in value.items():
        field = KIND_FIELDS.get(name.lower()) if len(name) in {4, 10} else None
        if field is not None and item is not None and not isinstance(item, str):
            return f"{prefix} {go_type_of(item)} into Go struct field .{field} of type string"
    return ""


def repeats_complaint(body: Body) -> list[str]:
    """Return the error of a strict YAML reader about repeated keys: one message for all of them."""
    return [REPEATS + "\n".join(f"  {repeat}" for repeat in body.repeats)] if body.repeats else []
