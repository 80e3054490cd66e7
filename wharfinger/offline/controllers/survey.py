"""A survey of a tree: all Kustomizations are built, but for releases only the inputs are recorded, and sources are not fetched.

The surveys of two versions of a tree show which releases differ. After :meth:`Survey.end`, the same controllers reconcile these
releases, and the sources that they read, as in any other build.

Kustomizations, folders and packages are built as always, and so are releases whose charts may make further nodes: without them
the survey would not know all nodes. If a Kustomization reads a source outside of the tree, that source is fetched.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from wharfinger.formats.json.value import find
from wharfinger.offline.controllers.controller import Controller, NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate
from wharfinger.offline.store.kinds import BUCKET, GIT_REPOSITORY, OCI_REPOSITORY
from wharfinger.offline.store.store import Stored
from wharfinger.runtime.fixpoint.model import Id, Level

UNCHANGED: Final = "unchanged"
"""The reason with which a survey skips a release or a source."""
FETCHED: Final = frozenset({GIT_REPOSITORY, OCI_REPOSITORY, BUCKET})
"""The kinds of sources for which the controller fetches files."""


class ReleaseController(Controller, Protocol):
    """A controller that can compute a digest of the inputs of a release."""

    async def inputs(self, stored: Stored, gate: Gate, /) -> str | None:
        """Return the digest of the inputs; None if the release must be rendered. Raises the same errors as `reconcile`."""
        ...


@dataclass(slots=True)
class Survey:
    """The recorded inputs of releases. A survey is in progress until `end`.

    ``unsearched`` are releases for which the survey does not know whether they make nodes, because it does not fetch their
    charts. If the survey is ``strict``, these releases are rendered.
    """

    inputs: dict[Id, str] = field(default_factory=dict)
    unsearched: set[Id] = field(default_factory=set)
    in_progress: bool = True
    strict: bool = False

    def end(self) -> None:
        """End the survey: from now on, controllers render and fetch."""
        self.in_progress = False


class SurveyedReleases:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that records the inputs of releases during a survey,
    and renders the releases after the survey.
    """

    def __init__(self, survey: Survey, controller: ReleaseController, sources: Controller, run: RunContext) -> None:
        self._survey = survey
        self._controller = controller
        self._sources = sources
        self._run = run

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Record the digest of the release's inputs if the survey is in progress and the digest is known; otherwise, render the
        release. Raises ReconcileError, or the errors of the gate.
        """
        self._survey.inputs.pop(stored.id, None)
        self._survey.unsearched.discard(stored.id)
        self._run.unsearched.discard(stored.id)
        if self._survey.in_progress:
            digest = await self._controller.inputs(stored, gate)
            is_unsearched = stored.id in self._run.unsearched
            if digest is not None and not (is_unsearched and self._survey.strict):
                self._survey.inputs[stored.id] = digest
                self._survey.unsearched.update({stored.id} if is_unsearched else ())
                return NodeResult(skipped=UNCHANGED)
            for source in sorted(gate.reads):
                await fetched_source(source, self._sources, self._run)
        return await self._controller.reconcile(stored, gate)


class SurveyedSources:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` of sources. During a survey, it fetches none."""

    def __init__(self, survey: Survey, controller: Controller, run: RunContext) -> None:
        self._survey = survey
        self._controller = controller
        self._run = run

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Fetch a source, unless a survey is in progress. Raises ReconcileError, or the errors of the gate."""
        is_fetched = stored.id.kind in FETCHED and stored.id not in self._run.tree.local_sources
        if self._survey.in_progress and is_fetched:
            return NodeResult(skipped=UNCHANGED)
        return await self._controller.reconcile(stored, gate)


class SurveyedBuilds:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that builds nodes, and fetches their sources first.

    ``sources_of`` returns the ids of the sources of a node.
    """

    def __init__(
        self,
        survey: Survey,
        controller: Controller,
        sources: Controller,
        run: RunContext,
        sources_of: Callable[[Stored], Iterable[Id]],
    ) -> None:
        self._sources_of = sources_of
        self._survey = survey
        self._controller = controller
        self._sources = sources
        self._run = run

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Build a node. Raises ReconcileError, and the errors of the gate, such as BlockedError."""
        if self._survey.in_progress and find(stored.object, "spec", "suspend") is not True:
            for source in self._sources_of(stored):
                await fetched_source(source, self._sources, self._run)
        return await self._controller.reconcile(stored, gate)


async def fetched_source(who: Id, sources: Controller, run: RunContext) -> None:
    """Fetch a source if it has to be fetched and has no artifact yet. Raises ReconcileError, or the errors of the gate."""
    source = run.store.get(who)
    if source is not None and who.kind in FETCHED and who not in run.artifacts:
        await sources.reconcile(source, Gate(who, Level.NONE, (), run.store, run.tree))
