"""The interface of controllers, the services that they share, and the result of their work."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.parsed_texts import ParsedTexts
from wharfinger.offline.controllers.gate import Gate
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.sources.fetcher import Artifact
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.offline.store.store import ObjectStore, Stored
from wharfinger.packages.kustomizing.loads import RealPaths
from wharfinger.runtime.fixpoint.model import Id


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The result of one run of a node.

    ``objects`` are its manifests, in the order in which they were rendered. ``namespace`` is the default for objects that do not
    name a namespace. ``internal`` are objects that only other nodes read: a controller makes them in a cluster, so they are not
    printed. ``skipped`` is the reason why the node was skipped, "" if it was built. ``warnings`` are for the report.
    """

    objects: tuple[JsonObject, ...] = ()
    namespace: str = ""
    revision: str = ""
    skipped: str = ""
    warnings: tuple[str, ...] = ()
    internal: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of an offline run that its controllers read."""

    kube_version: str
    api_versions: tuple[str, ...] = ()
    allow_missing_secrets: bool = False
    allow_missing_crds: bool = False
    """True if custom resource definitions that a ResourceSet depends on may be missing in the tree."""


@dataclass(slots=True)
class RunContext:
    """The shared state of the controllers of one run: the tree, the store, and the artifacts of fetched sources."""

    tree: Tree
    store: ObjectStore
    options: RunOptions
    scratch: Path
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    """The policy for fetches of charts and packages."""
    artifacts: dict[Id, Artifact] = field(default_factory=dict)
    unsearched: set[Id] = field(default_factory=set)
    """The releases for which it is unknown whether they make nodes. A survey (``survey.py``) cannot find this out, because it
    does not fetch their charts.
    """
    texts: ParsedTexts = field(default_factory=ParsedTexts)
    paths: RealPaths = field(default_factory=RealPaths)
    """The real paths of the files that kustomizations name, cached for this run."""
    _folders: int = 0

    def new_folder(self) -> Path:
        """Return the path of a scratch folder that does not exist yet."""
        self._folders += 1
        return self.scratch / "work" / str(self._folders)


class Controller(Protocol):
    """A controller, which turns the objects of some kinds into manifests."""

    async def reconcile(self, stored: Stored, gate: Gate, /) -> NodeResult:
        """Do the work of one node. Raises the errors of the gate, or ReconcileError."""
        ...
