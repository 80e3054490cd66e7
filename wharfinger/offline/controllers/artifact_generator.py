"""The controller of Flux ArtifactGenerators, which compose artifacts from the files of sources.

Each artifact is an ExternalArtifact, which Kustomizations and HelmReleases read as their source. In a cluster the generator's
controller makes these objects, so they are put into the object store, but are not printed.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_object, find_str
from wharfinger.kube.names import is_subdomain
from wharfinger.offline.building.artifact_copies import CopyError, copy_all, read_copies
from wharfinger.offline.building.charts import FolderDigests
from wharfinger.offline.building.metadata import with_common_metadata
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, Need, ReconcileError
from wharfinger.offline.sources.fetcher import Artifact
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import EXTERNAL_ARTIFACT, OCI_REPOSITORY
from wharfinger.offline.store.store import Stored
from wharfinger.packages.errors import ArtifactError
from wharfinger.runtime.fixpoint.model import Id

API_VERSION: Final = "source.toolkit.fluxcd.io/v1"
DISABLED: Final = "source.extensions.fluxcd.io/reconcile"
_CAPTURE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class _Request:
    """One artifact to make: its name, its entry in the object, and the labels from ``spec.pathPattern``."""

    name: str
    entry: JsonObject
    where: str
    labels: Mapping[str, str]


class ArtifactGeneratorController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that makes the artifacts of ArtifactGenerators."""

    def __init__(self, run: RunContext, digests: FolderDigests) -> None:
        self._run = run
        self._digests = digests

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Make all artifacts of a generator. Raises ReconcileError, or the errors of the gate."""
        if find_str(stored.object, "metadata", "annotations", DISABLED).lower() == "disabled":
            return NodeResult(skipped="its reconciliation is disabled by an annotation")
        named = sources_of(stored)
        gate.require(Need(who, f"spec.sources[{number}]") for number, who in enumerate(named.values()))
        try:
            sources = {alias: await trio.to_thread.run_sync(self._files, who) for alias, who in named.items()}
            requests = await trio.to_thread.run_sync(_requests, stored.object, sources)
            made = tuple([await self._made(stored, request, sources) for request in requests])
        except (CopyError, FormatError, ArtifactError) as error:
            raise ReconcileError(str(error)) from error
        return NodeResult(internal=with_common_metadata(made, find_object(stored.object, "spec", "commonMetadata")))

    def _files(self, who: Id) -> Path:
        """Return the folder with the files of a source, laid out as in a cluster. Blocking. Raises ReconcileError."""
        artifact = self._run.artifacts.get(who)
        if artifact is None:
            raise ReconcileError(f"spec.sources: {shown(who)} has no files: it is suspended, or not a source of files")
        chart = artifact.folder / "Chart.yaml"
        if who.kind != OCI_REPOSITORY or not chart.is_file():
            return artifact.folder
        # The archive of a chart has a folder with the chart's name, which the store of packages leaves out.
        around = self._run.new_folder()
        around.mkdir(parents=True)
        shutil.copytree(artifact.folder, around / chart_name(chart))
        return around

    async def _made(self, stored: Stored, request: _Request, sources: Mapping[str, Path]) -> JsonObject:
        """Make one artifact; return its object. Raises CopyError, FormatError, ArtifactError."""
        copies, folder = read_copies(request.entry, request.where), self._run.new_folder()
        try:
            await trio.to_thread.run_sync(copy_all, copies, sources, folder)
        except OSError as error:
            raise CopyError(f"{request.where}: {error.filename}: {error.strerror}") from error
        digest = await self._digests.of(folder)
        who = Id(EXTERNAL_ARTIFACT, stored.id.namespace, request.name)
        self._run.artifacts[who] = Artifact(folder, digest)
        metadata: JsonObject = {"name": request.name, "namespace": stored.id.namespace, "labels": {**request.labels}}
        source: JsonObject = {
            "apiVersion": find_str(stored.object, "apiVersion"),
            "kind": "ArtifactGenerator",
            "name": stored.id.name,
        }
        return {
            "apiVersion": API_VERSION,
            "kind": "ExternalArtifact",
            "metadata": metadata,
            "spec": {"sourceRef": source},
            "status": {"artifact": {"revision": f"latest@{digest}"}},
        }


def sources_of(stored: Stored) -> dict[str, Id]:
    """Return the sources of a generator by alias. Raises ReconcileError."""
    found: dict[str, Id] = {}
    for number, entry in enumerate(find_list(stored.object, "spec", "sources")):
        where = f"spec.sources[{number}]"
        each = as_object(entry, where)
        alias, kind, name = (find_str(each, key) for key in ("alias", "kind", "name"))
        if not alias or not kind or not name or alias in found:
            raise ReconcileError(f"{where}: needs kind, name, and an alias that no other source has")
        namespace = find_str(each, "namespace", default=stored.id.namespace)
        found[alias] = Id(f"{kind}.source.toolkit.fluxcd.io", namespace, name)
    if not found:
        raise ReconcileError("spec.sources: needs at least one source")
    return found


def chart_name(path: Path) -> str:
    """Return the name that a ``Chart.yaml`` has; "chart" if it has no valid name. Blocking."""
    for line in path.read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        name = value.strip().strip("'\"")
        if key == "name" and is_subdomain(name):
            return name
    return "chart"


def _requests(obj: JsonObject, sources: Mapping[str, Path]) -> list[_Request]:
    """Return the artifacts of a generator: one for each entry of ``spec.artifacts`` or, with ``spec.pathPattern``, one for each
    entry and each folder that matches. Blocking.
    """
    entries = [as_object(each, f"spec.artifacts[{n}]") for n, each in enumerate(find_list(obj, "spec", "artifacts"))]
    if not entries:
        raise CopyError("spec.artifacts: needs at least one artifact")
    pattern = find_str(obj, "spec", "pathPattern")
    found: list[_Request] = []
    for captures in _captures(pattern, sources) if pattern else ({},):
        lowered = {key: value.lower() for key, value in captures.items()}
        for number, entry in enumerate(entries):
            where = f"spec.artifacts[{number}]"
            name = _filled(find_str(entry, "name"), lowered, where)
            if not is_subdomain(name):
                raise CopyError(f"{where}.name: {name!r} cannot be a name; correct it")
            if any(each.name == name for each in found):
                raise CopyError(f"{where}.name: two artifacts have the name {name!r}; rename one")
            copies: list[JsonObject] = []
            for each in find_list(entry, "copy"):
                one = as_object(each, f"{where}.copy")
                paths: JsonObject = {key: _filled(find_str(one, key), captures, where) for key in ("from", "to")}
                copies.append({**one, **paths})
            found.append(_Request(name, {**entry, "copy": [*copies]}, where, lowered))
    return found


def _captures(pattern: str, sources: Mapping[str, Path]) -> Iterator[dict[str, str]]:
    """Yield, for each folder that matches a pattern such as ``@git/apps/{app}``, the values of the names in braces. Blocking.

    Raises CopyError.
    """
    alias, slash, path = pattern.removeprefix("@").partition("/")
    if not pattern.startswith("@") or not slash or alias not in sources:
        raise CopyError(f"spec.pathPattern: expected @ALIAS/PATTERN with the alias of a source, found {pattern!r}")
    names = _CAPTURE.findall(path)
    if len({*names}) != len(names) or {*"{}"} & {*_CAPTURE.sub("", path)}:
        raise CopyError(f"spec.pathPattern: {pattern!r}: expected names in braces, each once")
    expression = re.escape(path)
    for name in names:
        expression = expression.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>[^/]+)")
    matcher, root = re.compile(f"{expression}\\Z"), sources[alias]
    for folder in sorted(each for each in root.rglob("*") if each.is_dir() and not each.is_symlink()):
        found = matcher.match(folder.relative_to(root).as_posix())
        if found is None:
            continue
        if wrong := next((value for value in found.groupdict().values() if not _LABEL_VALUE.match(value)), None):
            raise CopyError(f"spec.pathPattern: {pattern!r} matches {wrong!r}, which cannot be the value of a label")
        yield found.groupdict()


def _filled(text: str, captures: Mapping[str, str], where: str) -> str:
    """Return a text with its names in braces replaced. Raises CopyError."""
    if captures and (unknown := sorted({*_CAPTURE.findall(text)} - captures.keys())):
        raise CopyError(f"{where}: {text!r}: {{{unknown[0]}}} is not among the names in braces in spec.pathPattern")
    return _CAPTURE.sub(lambda found: captures[found[1]], text) if captures else text
