"""The controller of Flux Kustomizations, and of folders with a ``kustomization.yaml`` that no Kustomization builds."""

from collections.abc import Mapping
from pathlib import Path

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str
from wharfinger.offline.building.overlay import has_kustomization, overlay_of, resources_of
from wharfinger.offline.building.substitution import substituted
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, MissingError, Need, ReconcileError
from wharfinger.offline.controllers.readiness import Readiness
from wharfinger.offline.controllers.references import texts_of
from wharfinger.offline.discovery.build_files import normal_path
from wharfinger.offline.discovery.builders import source_of
from wharfinger.offline.discovery.documents import Problem, is_encrypted, without_encryption
from wharfinger.offline.discovery.tree import repository_above
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import CONFIG_MAP, KUSTOMIZATION, SECRET
from wharfinger.offline.store.store import Place, Stored
from wharfinger.packages.kustomizing.kustomization import Folder, Overlay
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder, KustomizeError
from wharfinger.packages.kustomizing.loads import LoadError, check_loads
from wharfinger.runtime.fixpoint.model import Id, Level


def dependencies_of(stored: Stored) -> list[Need]:
    """Return the objects of the same kind that ``spec.dependsOn`` names."""
    return [
        Need(
            Id(stored.id.kind, find_str(each, "namespace", default=stored.id.namespace), find_str(each, "name")),
            f"spec.dependsOn[{number}]",
        )
        for number, each in enumerate(find_list(stored.object, "spec", "dependsOn"))
    ]


class KustomizationController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that builds Kustomizations of Flux."""

    def __init__(self, run: RunContext, builder: KustomizeBuilder, readiness: Readiness) -> None:
        self._run = run
        self._builder = builder
        self._readiness = readiness

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Build one Kustomization. Raises ReconcileError, or the errors of the gate."""
        spec = find_object(stored.object, "spec")
        if find(spec, "suspend") is True:
            return NodeResult(skipped="suspended")
        source = source_of(stored.object, stored.id.namespace)
        dependencies = dependencies_of(stored)
        gate.require([*dependencies, Need(source, "spec.sourceRef")])
        warnings = await self._readiness.of_dependencies(stored, dependencies)
        variables = self._variables(stored, spec, gate)
        root, relative = self._folder(source, spec)
        objects = await self._built(root, relative, overlay_of(spec))
        try:
            made = tuple(_decrypted(substituted(each, variables)) for each in objects)
        except FormatError as error:
            raise ReconcileError(f"spec.postBuild: {error}") from error
        return NodeResult(made, namespace=find_str(spec, "targetNamespace"), warnings=warnings)

    async def _built(self, root: Path, relative: str, fields: JsonObject) -> tuple[JsonObject, ...]:
        folder = root / relative
        try:
            resources = resources_of(root, relative)
            if not resources:
                return ()
            check_build(self._run, root, relative, fields)  # reads a few files, which costs less than a thread
            is_whole = resources == ["."] and not fields
            what = Folder(folder, relative) if is_whole else Overlay(folder, relative, tuple(resources), fields)
            return await self._builder.build(what)
        except (TreeError, OSError) as error:
            raise ReconcileError(f"spec.path: {error}") from error
        except KustomizeError as error:
            raise build_error(self._run, relative, error) from error

    def _folder(self, source: Id, spec: JsonObject) -> tuple[Path, str]:
        """Return the root folder of the source, and the path of the folder to build, relative to that root."""
        artifact = self._run.artifacts.get(source)
        if artifact is None:
            raise ReconcileError(
                f"spec.sourceRef: {shown(source)} has no files: it is suspended, or not a source of files"
            )
        text = find_str(spec, "path", default=".")
        relative = normal_path(text)
        root = artifact.folder.absolute()
        folder = root / (relative or "")
        if relative is None or not self._run.paths.is_inside(folder, root):
            raise ReconcileError(f"spec.path: {text!r} leads out of the source; correct it")
        if not folder.is_dir():
            raise ReconcileError(f"spec.path: {shown(source)} has no folder {text!r}; correct it, or add the folder")
        return root, relative

    def _variables(self, stored: Stored, spec: JsonObject, gate: Gate) -> Mapping[str, str]:
        """Return the variables of ``spec.postBuild``; inline variables win over those of references."""
        variables: dict[str, str] = {}
        for number, each in enumerate(find_list(spec, "postBuild", "substituteFrom")):
            kind, name = find_str(each, "kind"), find_str(each, "name")
            field = f"spec.postBuild.substituteFrom[{number}]"
            if kind not in {CONFIG_MAP, SECRET}:
                raise ReconcileError(f"{field}: expected the kind ConfigMap or Secret, found {kind!r}")
            who = Id(kind, stored.id.namespace, name)
            found = self._reference(who, field, gate, optional=find(each, "optional") is True)
            if found is not None:
                variables |= {key: value.replace("\n", "") for key, value in texts_of(found).items()}
        written = find_object(spec, "postBuild", "substitute")
        return variables | {key: value for key, value in written.items() if isinstance(value, str)}

    def _reference(self, who: Id, field: str, gate: Gate, *, optional: bool) -> Stored | None:
        """Return a ConfigMap or Secret. If the Kustomization itself makes this object, read it from its file. Return None if
        the object is missing and not required. Raises the errors of the gate.
        """
        try:
            gate.require([Need(who, field)])
        except MissingError:
            own = self._run.tree.declared.get(who)
            if own is not None and self._builds(gate.who, own.place.file):
                return Stored(who, own.object, "", own.place)
            if optional or (who.kind == SECRET and self._run.options.allow_missing_secrets):
                return None
            raise
        return self._run.store.get(who)

    def _builds(self, who: Id, file: str) -> bool:
        stored = self._run.store.get(who)
        if stored is None or who.kind != KUSTOMIZATION:
            return False
        folder = normal_path(find_str(stored.object, "spec", "path", default="."))
        local = source_of(stored.object, who.namespace) in self._run.tree.local_sources
        return local and folder is not None and self._run.tree.is_below(file, folder)


class FolderController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that builds folders with a ``kustomization.yaml``."""

    def __init__(self, run: RunContext, builder: KustomizeBuilder) -> None:
        self._run = run
        self._builder = builder

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Build one folder. Raises ReconcileError."""
        if gate.level is not Level.NONE:
            raise AssertionError("a folder depends on nothing, so it must not run at a stricter level")
        folder = self._run.tree.root / stored.id.name
        try:
            if not await trio.to_thread.run_sync(has_kustomization, folder):
                raise ReconcileError(f"{stored.id.name}: has no kustomization.yaml any more")
            await trio.to_thread.run_sync(check_build, self._run, self._run.tree.root, stored.id.name, {})
            objects = await self._builder.build(Folder(folder, stored.id.name))
        except KustomizeError as error:
            raise build_error(self._run, stored.id.name, error) from error
        return NodeResult(tuple(map(_decrypted, objects)))


def check_build(run: RunContext, root: Path, folder: str, fields: JsonObject) -> None:
    """Check the files that a build of a folder would load, before the build. Blocking. Raises ReconcileError."""
    tree, limit = run.tree, root
    if root == tree.root:
        files = tree.build_files.files_of(folder)
        refused = next((each for each in tree.hidden_problems if each.is_limit and each.place.file in files), None)
        if refused is not None:
            raise ReconcileError(f"{refused.place.file}: {refused.message}", refused.place)
        limit = tree.limit
    more = [each for each in find_list(fields, "components") if isinstance(each, str)]
    try:
        check_loads(root / folder, limit, more, paths=run.paths, texts=run.texts)
    except LoadError as error:
        is_below = error.file.is_relative_to(root.resolve())
        file = error.file.relative_to(root.resolve()).as_posix() if is_below else str(error.file)
        # In a git repository the limit is the repository, so a wider --root would not help.
        has_wider = error.is_outside and root == tree.root and repository_above(tree.limit) is None
        hint = ", or name a --root that contains both" if has_wider else ""
        raise ReconcileError(f"{file}: {error}{hint}", Place(file) if root == tree.root else None) from error


def build_error(run: RunContext, folder: str, error: KustomizeError) -> ReconcileError:
    """Return the error of a build. If a file below the folder cannot be read, the error names this file and the line."""
    problems = [each for each in run.tree.hidden_problems if run.tree.is_below(each.place.file, folder)]
    named: Problem | None = next((each for each in problems if Path(each.place.file).name in str(error)), None)
    named = named or (problems[0] if len(problems) == 1 else None)
    if named is None:
        return ReconcileError(str(error))
    return ReconcileError(f"{named.place.file}: {named.message}", named.place)


def _decrypted(obj: JsonObject) -> JsonObject:
    return without_encryption(obj) if is_encrypted(obj) else obj
