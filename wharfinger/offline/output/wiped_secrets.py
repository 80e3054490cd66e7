"""Manifests without the values of Secrets, for output that others may see.

Each value becomes a placeholder such as ``..PLACEHOLDER_password..``, as the values that SOPS encrypted do. Only Secrets
are treated: a value that a chart also writes elsewhere, as into an environment variable, stays there.
"""

import base64
from collections.abc import Mapping

from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.store.kinds import SECRET
from wharfinger.runtime.fixpoint.model import Id


def with_wiped_secrets(manifests: Mapping[Id, tuple[Manifest, ...]]) -> dict[Id, tuple[Manifest, ...]]:
    """Return the manifests of all producers with placeholders for the values of Secrets."""
    return {producer: tuple(map(wiped, made)) for producer, made in manifests.items()}


def wiped(manifest: Manifest) -> Manifest:
    """Return a manifest; of a Secret, one with placeholders for its values."""
    if manifest.id.kind != SECRET:
        return manifest
    obj: JsonObject = dict(manifest.object)
    if data := find_object(obj, "data"):
        obj["data"] = {key: base64.b64encode(_placeholder(key).encode()).decode() for key in data}
    if texts := find_object(obj, "stringData"):
        obj["stringData"] = {key: _placeholder(key) for key in texts}
    return Manifest(manifest.id, obj)


def _placeholder(key: str) -> str:
    return f"..PLACEHOLDER_{key}.."
