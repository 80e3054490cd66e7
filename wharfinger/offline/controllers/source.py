"""The controller of sources: GitRepository, OCIRepository, HelmRepository, HelmChart and Bucket.

A source of the tree itself is not fetched: its files are those of the tree on this machine. A HelmRepository and a HelmChart
are ready without a fetch, because a release fetches only the chart that it names.
"""

from typing import Final

from wharfinger.formats.json.value import find, find_str
from wharfinger.offline.building.stand_ins import is_stand_in
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, MissingError, Need, ReconcileError
from wharfinger.offline.controllers.references import secret_bytes
from wharfinger.offline.sources.fetcher import Artifact, SourceError, SourceRequest
from wharfinger.offline.sources.fetchers import Fetchers
from wharfinger.offline.store.kinds import HELM_CHART, HELM_REPOSITORY, SECRET
from wharfinger.offline.store.store import Stored
from wharfinger.runtime.fixpoint.model import Id

LOCAL_REVISION: Final = "working tree"


class SourceController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that fetches sources."""

    def __init__(self, run: RunContext, fetchers: Fetchers) -> None:
        self._run = run
        self._fetchers = fetchers

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Fetch one source. If the source is the tree itself, or a HelmRepository or HelmChart, nothing is fetched. Raises
        ReconcileError, or the errors of the gate.
        """
        if find(stored.object, "spec", "suspend") is True:
            return NodeResult(skipped="suspended")
        if stored.id in self._run.tree.local_sources:
            self._run.artifacts[stored.id] = Artifact(self._run.tree.root, "")
            return NodeResult(revision=LOCAL_REVISION)
        if stored.id.kind in {HELM_REPOSITORY, HELM_CHART}:
            return NodeResult(revision=stored.digest)
        secret = self.secret_of(stored, gate)
        try:
            artifact = await self._fetchers.fetch(SourceRequest(stored.id, stored.object, secret))
        except SourceError as error:
            raise ReconcileError(str(error)) from error
        self._run.artifacts[stored.id] = artifact
        return NodeResult(revision=artifact.revision)

    def secret_of(self, stored: Stored, gate: Gate) -> dict[str, bytes] | None:
        """Return the data of the Secret that a source names; None if it names no Secret, or if the tree lacks the
        Secret and this is allowed, or if the tree has only a stand-in for the Secret. Raises the errors of the gate.
        """
        name = find_str(stored.object, "spec", "secretRef", "name")
        if not name:
            return None
        who = Id(SECRET, stored.id.namespace, name)
        try:
            gate.require([Need(who, "spec.secretRef")])
        except MissingError:
            if self._run.options.allow_missing_secrets:
                return None
            raise
        found = self._run.store.get(who)
        # A Secret that only the cluster has cannot be read here. Then a login in Docker's configuration may be used.
        return None if found is None or is_stand_in(found.object) else secret_bytes(found)
