"""Helpers that return Wharfinger's custom resources for tests."""

from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.resources.resources import FINALIZER


def application(
    namespace: str,
    name: str,
    *,
    package: str = "web-service",
    version: str = "1.0.0",
    repository: str | None = None,
    settings: JsonObject | None = None,
    generation: int = 1,
    deleting: bool = False,
) -> JsonObject:
    """Return an Application as an API server returns it."""
    metadata: JsonObject = {"namespace": namespace, "name": name, "uid": f"uid-{name}", "generation": generation}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        metadata["finalizers"] = [FINALIZER]
    spec: JsonObject = {"packageName": package, "packageVersion": version}
    if repository is not None:
        spec["packageRepositoryName"] = repository
    if settings is not None:
        spec["settings"] = settings
    return {"apiVersion": "wharfinger.dev/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def module(name: str, *, package: str = "", version: str = "1.0.0", spec: JsonObject | None = None) -> JsonObject:
    """Return a Module as a user writes it."""
    body: JsonObject = {"packageVersion": version, **(spec or {})}
    if package:
        body["packageName"] = package
    return {"apiVersion": "wharfinger.dev/v1alpha1", "kind": "Module", "metadata": {"name": name}, "spec": body}


def repository(address: str, *, name: str = "default", scheme: str | None = "HTTP") -> JsonObject:
    """Return a PackageRepository whose source is a registry."""
    registry: JsonObject = {"repo": address}
    if scheme is not None:
        registry["scheme"] = scheme
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "PackageRepository",
        "metadata": {"name": name},
        "spec": {"registry": registry},
    }
