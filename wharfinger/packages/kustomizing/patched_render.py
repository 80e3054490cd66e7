"""Patches of a rendered chart: kustomize applies them to the objects and Helm hooks, which are written back into the manifest.

Kustomize refuses two objects with the same kind and name, and hooks of different events often have the same name. So such
objects are built in separate groups. Kustomize ignores a patch whose target matches nothing, but here such a patch is an error.
To find it, a first build runs *probes* instead of the patches. The probe of a patch has the same target, and only adds an
annotation to the objects that match. If a probe marks nothing, it runs once more, after all preceding patches, because these
may change an object so that the target matches.

A patch may delete an object (``$patch: delete``). It may not change an object's kind, name or namespace.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find_object, find_str
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml
from wharfinger.formats.yaml.writer import write_yaml, write_yaml_all
from wharfinger.packages.errors import PatchError
from wharfinger.packages.kustomizing.kustomization import Manifests
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder, KustomizeError
from wharfinger.packages.kustomizing.patches import FIELD, MAX_PATCH_BYTES, Patch
from wharfinger.packages.rendering.helm_output import document_objects, split_documents
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.packages.rendering.rewriting import rewritten

MARK: Final = "wharfinger.dev/patch-"
_CONFIGURATION: Final = re.compile(r"trouble configuring builtin PatchTransformer with config: `.*`: ")
_UNNAMED: Final = "not-important"
_NO_BUILDER: Final = "patches need kustomize: install kubectl, or build the chart engine (`make engine`)"

Identity = tuple[str, str, str, str]
"""The group and version, kind, namespace and name of an object, with which kustomize distinguishes objects."""


async def patched(rendered: Rendered, patches: Sequence[Patch], builder: KustomizeBuilder | None) -> Rendered:
    """Apply patches to the objects and the Helm hooks of a render, but not to the definitions in ``crds/``.

    Raises PatchError naming the patch if it matches nothing or cannot be applied. Raises PatchError, too, if a patch changes an
    object's kind, name or namespace, or if there is no kustomize (``builder`` is None). Raises RenderError if the manifest is
    invalid.
    """
    if not patches:
        return rendered
    if builder is None:
        raise PatchError(f"{FIELD}: {_NO_BUILDER}")
    before = await trio.to_thread.run_sync(_objects_of, rendered)
    work = _Work(builder, tuple(_kustomize_patch(patch) for patch in patches), _grouped(before))
    await work.check_targets()
    found = await work.applied()
    following = iter(before)  # `rewritten` passes the objects to `change` in this order

    def change(obj: JsonObject) -> JsonObject | None:
        return found.get(id(next(following)), obj)

    return await trio.to_thread.run_sync(rewritten, rendered, change)


@dataclass(frozen=True, slots=True)
class _Work:
    """The patches in kustomize's form, and the objects in groups. No two objects of a group have the same identity."""

    builder: KustomizeBuilder
    patches: tuple[JsonObject, ...]
    groups: tuple[dict[Identity, JsonObject], ...]

    async def check_targets(self) -> None:
        """Check that each patch matches an object. Raises PatchError."""
        probes = [_probe(index, patch) for index, patch in enumerate(self.patches)]
        unmatched = set(range(len(probes))) - await self._marked(probes)
        for index in sorted(unmatched):
            if index not in await self._marked([*self.patches[:index], probes[index]]):
                target = ", ".join(
                    f"{name}={value}" for name, value in find_object(self.patches[index], "target").items()
                )
                raise PatchError(f"{FIELD}[{index}]: no object of the chart matches {target}; correct the target")

    async def applied(self) -> dict[int, JsonObject | None]:
        """Return each changed object (None if deleted), keyed by the ``id()`` of the object before the patches. Raises
        PatchError.
        """
        changed: dict[int, JsonObject | None] = {}
        for group in self.groups:
            built = await self._build(group, self.patches)
            after = {identity_of(obj): obj for obj in built}
            if strangers := sorted(after.keys() - group.keys()):
                version, kind, namespace, name = strangers[0]
                raise PatchError(
                    f"{FIELD}: a patch turns another object into {kind} {namespace}/{name} ({version}); kind, name "
                    "and namespace of an object cannot be patched"
                )
            for identity, obj in group.items():
                new = after.get(identity)
                if new != obj:
                    changed[id(obj)] = new
        return changed

    async def _marked(self, patches: Sequence[JsonObject]) -> set[int]:
        """Build all objects with these patches, some of which are probes: a probe marks each object that its target matches.
        Return the indexes of the probes that have marked an object.
        """
        found: set[int] = set()
        for group in self.groups:
            for obj in await self._build(group, patches):
                names = find_object(obj, "metadata", "annotations")
                found.update(int(name.removeprefix(MARK)) for name in names if name.startswith(MARK))
        return found

    async def _build(self, group: dict[Identity, JsonObject], patches: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        documents: list[JsonValue] = [*group.values()]
        text = await trio.to_thread.run_sync(write_yaml_all, documents)
        try:
            return await self._built(text, patches)
        except KustomizeError as error:
            if error.transient:
                raise PatchError(f"{FIELD}: {error}", transient=True) from error
            raise await self._named(text, patches, error) from error

    async def _built(self, text: str, patches: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        return await self.builder.build(Manifests(FIELD, text, {"patches": list[JsonValue](patches)}))

    async def _named(self, text: str, patches: Sequence[JsonObject], error: KustomizeError) -> PatchError:
        """Return an error that names the first failing patch. Find it by bisection over the number of patches in a build."""
        low, high, said = 0, len(patches), error
        while high - low > 1:
            middle = (low + high) // 2
            try:
                await self._built(text, patches[:middle])
                low = middle
            except KustomizeError as other:
                high, said = middle, other
        message = _CONFIGURATION.sub("", str(said).removeprefix("kustomize: "))
        return PatchError(f"{FIELD}[{high - 1}]: the patch cannot be applied: {message}; correct it")


def identity_of(obj: JsonObject) -> Identity:
    """Return the identity of an object for kustomize, which reads a missing namespace as ``default``."""
    namespace = find_str(obj, "metadata", "namespace") or "default"
    return find_str(obj, "apiVersion"), find_str(obj, "kind"), namespace, find_str(obj, "metadata", "name")


def _objects_of(rendered: Rendered) -> list[JsonObject]:
    """Return hooks and objects in the order in which `rewritten` passes them to its function. Blocking. Raises RenderError."""
    documents = split_documents(rendered.manifest)
    return [*rendered.hooks, *(obj for document in documents for obj in document_objects(document))]


def _grouped(objects: Iterable[JsonObject]) -> tuple[dict[Identity, JsonObject], ...]:
    """Return the objects in as few groups as possible, with different identities in each group.

    Objects without a name cannot be patched, and are left out.
    """
    groups: list[dict[Identity, JsonObject]] = []
    for obj in objects:
        identity = identity_of(obj)
        if not identity[3]:
            continue
        place = next((group for group in groups if identity not in group), None)
        if place is None:
            groups.append(place := {})
        place[identity] = obj
    return tuple(groups)


def _kustomize_patch(patch: Patch) -> JsonObject:
    """Return a patch for kustomize: with a target, and with the fields that kustomize requires in a strategic merge patch."""
    body = read_yaml(patch.patch.encode(), what=FIELD, limits=YamlLimits(MAX_PATCH_BYTES))
    if not isinstance(body, dict):  # written as JSON: kustomize reads any text that begins with a bracket as JSON
        return {**patch.document, "patch": encode_json(body).decode()}
    target: JsonObject = dict(patch.target)
    if not target:
        group, _, version = find_str(body, "apiVersion").rpartition("/")
        named = {
            "group": group,
            "version": version,
            "kind": find_str(body, "kind"),
            "name": find_str(body, "metadata", "name"),
            "namespace": find_str(body, "metadata", "namespace"),
        }
        target = {name: re.escape(value) for name, value in named.items() if value}
    metadata: JsonObject = {"name": _UNNAMED, **find_object(body, "metadata")}
    whole: JsonObject = {"apiVersion": _UNNAMED, "kind": _UNNAMED, **body, "metadata": metadata}
    return {"patch": write_yaml(whole), "target": target}


def _probe(number: int, patch: JsonObject) -> JsonObject:
    """Return the probe of a patch: another patch with the same target, which only adds a mark to the objects that match."""
    annotations: JsonObject = {f"{MARK}{number}": ""}
    metadata: JsonObject = {"name": _UNNAMED, "annotations": annotations}
    text = write_yaml({"apiVersion": _UNNAMED, "kind": _UNNAMED, "metadata": metadata})
    return {"patch": text, "target": find_object(patch, "target")}
