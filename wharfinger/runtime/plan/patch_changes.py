"""The differences between the chart of a planned package with and without its ``spec.patches``.

The chart is rendered by helm without a cluster. Only the settings in the resource itself are used, because a plan knows neither
the settings from ``settingsFrom`` nor the values that hooks change. If the chart cannot be rendered without these settings and
values, no changes are shown, and a note gives the reason.
"""

import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.formats.listing import listed
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.errors import PackageError
from wharfinger.packages.kustomizing.kustomize import KubectlKustomize, KustomizeBuilder
from wharfinger.packages.kustomizing.patched_render import Identity, identity_of, patched
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.renderer import Rendered, Renderer
from wharfinger.packages.settings.values import RenderContext, effective_settings, merged_values
from wharfinger.runtime.inspection.field_changes import field_changes
from wharfinger.runtime.plan.plan import Plan
from wharfinger.runtime.resources.manifests import PackageValues, Platform, chart_request, global_values
from wharfinger.runtime.resources.resources import PackageSpec

MAX_OBJECTS: Final = 20
"""The limit on the number of objects of one package whose changes are shown."""
MAX_FIELDS: Final = 5
"""The limit on the number of changed fields that are shown for one object."""
_KUBERNETES: Final = "1.30.0"
"""The version of Kubernetes for which charts are rendered if the plan names no version."""
_NOT_SHOWN: Final = "spec.patches: the changes are not shown"


LoadTree: TypeAlias = Callable[[str, str], Awaitable[tuple[Definition, Path]]]
"""A function that returns the definition and the files of a package by name and version. Raises PackageError."""


@dataclass(frozen=True, slots=True)
class PatchTools:
    """The tools that render and patch. Made by `find_patch_tools`."""

    renderer: Renderer
    builder: KustomizeBuilder
    kubernetes: str = ""

    async def changes(self, spec: PackageSpec, definition: Definition, tree: Path) -> tuple[str, ...]:
        """Return a line for each object that the patches change, for at most MAX_OBJECTS objects; or one line with the reason
        why no changes can be shown.
        """
        try:
            rendered = await self._rendered(spec, definition, tree)
            after = await patched(rendered, spec.directives.patches, self.builder)
        except (PackageError, FormatError) as error:
            return (f"{_NOT_SHOWN}: {error}",)
        return tuple(_lines(rendered, after, spec.id.namespace))

    async def _rendered(self, spec: PackageSpec, definition: Definition, tree: Path) -> Rendered:
        context = RenderContext(
            name=spec.id.release, namespace=spec.id.namespace, registry="", version=spec.version, digest=""
        )
        version = self.kubernetes or _KUBERNETES
        settings = effective_settings(definition, spec.settings)
        values = PackageValues(
            global_values(version, {}),
            settings,
            merged_values(definition, spec.settings),
        )
        platform = Platform(version, ())
        request = chart_request(definition, tree, context, values, platform, upgrade=False, confined=False)
        return await self.renderer.render(request)


def find_patch_tools(scratch: Path, kubernetes: str) -> PatchTools | None:
    """Return the tools that are on PATH; None if helm or kubectl is missing."""
    helm, kubectl = shutil.which("helm"), shutil.which("kubectl")
    if helm is None or kubectl is None:
        return None
    builder = KubectlKustomize(Path(kubectl), scratch, network=False, at_once=1)
    return PatchTools(HelmRenderer(Path(helm), scratch), builder, kubernetes)


async def with_patch_changes(
    plan: Plan, specs: Mapping[str, PackageSpec], tools: PatchTools | None, load: LoadTree
) -> Plan:
    """Return the plan with notes about the fields that patches change, for the packages that would be on."""
    notes: dict[str, tuple[str, ...]] = {}
    for each in plan.order:
        spec = specs[each.name]
        if not spec.directives.patches:
            continue
        if tools is None:
            notes[each.name] = (f"{_NOT_SHOWN}, because helm or kubectl is not on PATH; install both",)
            continue
        try:
            definition, tree = await load(spec.package, spec.version)
        except PackageError as error:
            notes[each.name] = (f"{_NOT_SHOWN}: {error}",)
            continue
        notes[each.name] = await tools.changes(spec, definition, tree)
    changed = (replace(each, notes=(*each.notes, *notes.get(each.name, ()))) for each in plan.packages)
    return replace(plan, packages=tuple(changed))


def _lines(before: Rendered, after: Rendered, namespace: str) -> Iterator[str]:
    old, new = _objects(before), _objects(after)
    changed = [identity for identity, obj in old.items() if new.get(identity) != obj]
    for identity in changed[:MAX_OBJECTS]:
        _, kind, _, name = identity
        what = f"spec.patches: {kind} {find_str(old[identity], 'metadata', 'namespace') or namespace}/{name}"
        if identity not in new:
            yield f"{what} is left out"
            continue
        fields, more = field_changes(old[identity], new[identity], ())
        texts = [f"{each.pointer} {each.before or 'nothing'} → {each.after or 'nothing'}" for each in fields]
        yield f"{what}: {listed(texts, MAX_FIELDS)}{f' ({more} more fields)' if more else ''}"
    if len(changed) > MAX_OBJECTS:
        yield f"spec.patches: {len(changed) - MAX_OBJECTS} more objects are changed"


def _objects(rendered: Rendered) -> dict[Identity, JsonObject]:
    every = (*rendered.objects, *rendered.hooks)
    return {identity_of(each): each for each in every if find_str(each, "metadata", "name")}
