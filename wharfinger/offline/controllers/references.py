"""The data of ConfigMaps and Secrets that objects refer to."""

import base64
from collections.abc import Mapping

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.offline.controllers.gate import ReconcileError
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import SECRET
from wharfinger.offline.store.store import Stored
from wharfinger.runtime.resources.secret_data import secret_data


def secret_bytes(stored: Stored) -> dict[str, bytes]:
    """Return the data of a Secret, ``stringData`` included. Raises ReconcileError."""
    try:
        data = secret_data(stored.object)
    except FormatError as error:
        raise ReconcileError(f"{shown(stored.id)}: {error}", stored.place) from error
    plain = find_object(stored.object, "stringData")
    return {**data, **{key: value.encode() for key, value in plain.items() if isinstance(value, str)}}


def texts_of(stored: Stored) -> Mapping[str, str]:
    """Return the texts of a ConfigMap or a Secret by key. Raises ReconcileError."""
    if stored.id.kind == SECRET:
        return {key: value.decode(errors="replace") for key, value in secret_bytes(stored).items()}
    return {key: value for key, value in find_object(stored.object, "data").items() if isinstance(value, str)}


def with_encoded_data(secret: JsonObject, data: Mapping[str, bytes]) -> JsonObject:
    """Return a Secret with all of its data in ``data``, as an API server stores it."""
    encoded: JsonObject = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {**{key: value for key, value in secret.items() if key != "stringData"}, "data": encoded}
