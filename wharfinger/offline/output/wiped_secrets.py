"""Manifests without the values of Secrets, for output that others may see.

Each value becomes a placeholder such as ``..PLACEHOLDER_password..``. (A value that SOPS encrypted becomes such a placeholder in
every build.) Only Secrets are changed: if a chart also writes a value elsewhere, for example into an environment variable, the
value stays there.
"""

import base64
from collections.abc import Mapping
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.formats.redaction.redaction import LAST_APPLIED
from wharfinger.offline.discovery.documents import placeholder
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.store.kinds import SECRET
from wharfinger.runtime.fixpoint.model import Id

PUBLIC: Final = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
"""The fields of a Secret that hold no values."""


def with_wiped_secrets(manifests: Mapping[Id, tuple[Manifest, ...]]) -> dict[Id, tuple[Manifest, ...]]:
    """Return the manifests of all producers with placeholders for the values of Secrets."""
    return {producer: tuple(map(wiped, made)) for producer, made in manifests.items()}


def wiped(manifest: Manifest) -> Manifest:
    """Return the manifest, with placeholders for the values if it is a Secret."""
    if manifest.id.kind != SECRET:
        return manifest
    obj = without_copies(manifest.object)
    return Manifest(manifest.id, {key: value if key in PUBLIC else _wiped(key, value) for key, value in obj.items()})


def without_copies(secret: JsonObject) -> JsonObject:
    """Return a Secret without the annotation in which ``kubectl apply`` stores a copy of it."""
    annotations = find(secret, "metadata", "annotations")
    metadata = secret.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(annotations, dict) or LAST_APPLIED not in annotations:
        return secret
    kept: JsonObject = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**secret, "metadata": {**metadata, "annotations": kept}}


def _wiped(field: str, value: JsonValue) -> JsonValue:
    """Return a field with placeholders for its values; a field of an unexpected shape becomes one placeholder as a whole."""
    if not isinstance(value, dict):
        return placeholder(field)
    texts = {key: placeholder(key) for key in value}
    return {key: base64.b64encode(text.encode()).decode() if field == "data" else text for key, text in texts.items()}
