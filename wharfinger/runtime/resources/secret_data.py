"""The decoded data of Secrets. Pure."""

import base64
import binascii

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_object, find_str


def secret_data(secret: JsonObject) -> dict[str, bytes]:
    """Return ``data`` of a Secret, decoded. Raises FormatError, which names the key."""
    data: dict[str, bytes] = {}
    for key in find_object(secret, "data"):
        try:
            data[key] = base64.b64decode(find_str(secret, "data", key), validate=True)
        except binascii.Error as error:
            raise FormatError(f"data.{key}: not base64") from error
    return data
