"""The steps that make a package's manifests from its settings without a cluster. All functions are pure, except that they
read the package's files.

The daemon and an offline build both use these functions, so both get the same objects. `chart_request` returns the request for
a render, `with_overrides` applies the user's overrides and the maintenance mode to the rendered objects, and `global_values`
returns the values that are the same for all packages.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.formats.merge_patch import overlaid
from wharfinger.packages.definition.definition import Definition, Layout, read_definition
from wharfinger.packages.definition.global_folder import read_global_definition
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest
from wharfinger.packages.rendering.resource_overrides import override_rendered
from wharfinger.packages.rendering.rewriting import rewritten
from wharfinger.packages.settings.values import RenderContext, helm_values
from wharfinger.packages.sources.source import RegistrySource, Source, source_text
from wharfinger.runtime.resources.identity import PackageId, is_global
from wharfinger.runtime.resources.resources import Directives

UNMANAGED_LABEL: Final = "wharfinger.dev/no-resource-reconciliation"


@dataclass(frozen=True, slots=True)
class PackageValues:
    """The values that a render uses: the global values, the effective settings, and the package's own values."""

    platform: JsonObject
    settings: JsonObject
    values: JsonObject


@dataclass(frozen=True, slots=True)
class Platform:
    """The facts about the cluster for templates: its version, and the API versions that it serves."""

    kube_version: str
    api_versions: tuple[str, ...]


def installed_definition(
    tree: Path, identity: PackageId, *, package: str, version: str, static: JsonObject | None
) -> Definition:
    """Read a package's definition from its files. ``static`` are the values that a modules directory has for the package; None
    if the package is not from a modules directory.

    Blocking. Raises PackageError, FormatError.
    """
    if is_global(identity):
        definition = read_global_definition(tree, version=version)
    else:
        definition = read_definition(tree, name=package, version=version, in_modules_dir=static is not None)
    if static:
        definition = replace(definition, static_values=overlaid(static, definition.static_values))
    return definition


def chart_request(
    definition: Definition,
    tree: Path,
    context: RenderContext,
    values: PackageValues,
    platform: Platform,
    *,
    upgrade: bool,
    confined: bool,
    reader: str = "",
) -> RenderRequest:
    """Return the request for rendering a package's chart. Raises SettingsError."""
    return RenderRequest(
        chart=tree,
        chart_digest=context.digest,
        release=context.name,
        namespace=context.namespace,
        values=helm_values(definition, context, values.platform, values.settings, values.values),
        kube_version=platform.kube_version,
        api_versions=platform.api_versions,
        is_upgrade=upgrade,
        chart_file=definition.chart_file,
        confined=confined,
        manifests=definition.layout is Layout.MANIFESTS,
        reader=reader,
    )


def with_overrides(found: Rendered, wanted: Directives) -> tuple[Rendered, tuple[str, ...]]:
    """Apply the user's overrides, and the changes for maintenance, to a render. Also return the overrides that match no
    object. Blocking. Raises RenderError.
    """
    unmatched: tuple[str, ...] = ()
    if wanted.overrides:
        found, unmatched = override_rendered(found, wanted.overrides)
    return (rewritten(found, _unmanaged) if wanted.maintenance else found), unmatched


def registry_address(source: Source | None) -> str:
    """Return the address of a package's repository, without the package's name, for templates."""
    if isinstance(source, RegistrySource):
        return str(source.address)
    return source_text(source) if source is not None else ""


def global_values(
    kubernetes_version: str, modules: Mapping[str, Collection[str] | None], own: JsonObject | None = None
) -> JsonObject:
    """Return the values that every package gets under ``global``: the Modules that are on, the kinds of their CRDs, the
    version of Kubernetes, and the values of the Module ``global``.

    ``modules`` are the Modules that are on, by name and sorted, with the kinds of their CRDs. ``own`` are the values of the
    Module ``global``, if it exists.
    """
    # A name with -crd says that the module's CRDs exist, which may be long before the module itself runs.
    enabled: list[JsonValue] = [*modules, *(f"{name}-crd" for name, crds in modules.items() if crds)]
    kinds: list[JsonValue] = [*sorted({kind for crds in modules.values() for kind in crds or ()})]
    known: JsonObject = {
        "discovery": {"kubernetesVersion": kubernetes_version, "customResources": kinds},
        "modules": {},
    }
    if own is not None:
        known = overlaid(known, own)
    return {**known, "enabledModules": enabled}


def _unmanaged(obj: JsonObject) -> JsonObject:
    metadata = find_object(obj, "metadata")
    labels: JsonObject = {**find_object(metadata, "labels"), UNMANAGED_LABEL: ""}
    return {**obj, "metadata": {**metadata, "labels": labels}}
