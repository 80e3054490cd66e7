"""The controllers of a survey: a build in which releases only record their inputs, and sources are not fetched
(`wharfinger.offline.controllers.survey`). In the tests, each controller of the survey wraps a fake controller that records its
calls.
"""

from pathlib import Path

import pytest

from tests.offline.support import OPTIONS, flux_id, write_tree
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, ReconcileError
from wharfinger.offline.controllers.survey import (
    UNCHANGED,
    Survey,
    SurveyedBuilds,
    SurveyedReleases,
    SurveyedSources,
)
from wharfinger.offline.discovery.builders import source_of
from wharfinger.offline.discovery.tree import discover
from wharfinger.offline.sources.fetcher import Artifact
from wharfinger.offline.store.store import ObjectStore, Stored
from wharfinger.runtime.fixpoint.model import Id, Level

RELEASE, GIT, HELM, KUSTOMIZATION = (
    flux_id("HelmRelease", "web"),
    flux_id("GitRepository", "far"),
    flux_id("HelmRepository", "charts"),
    flux_id("Kustomization", "apps"),
)


def sources_of(stored: Stored) -> tuple[Id, ...]:
    return (source_of(stored.object, stored.id.namespace),)


class Recorder:
    """A controller that records which objects it reconciles."""

    def __init__(self, run: RunContext, digest: str | None = "sha256:1") -> None:
        self.run = run
        self.digest = digest
        self.reconciled: list[Id] = []

    async def inputs(self, _stored: Stored, _gate: Gate) -> str | None:
        return self.digest

    async def reconcile(self, stored: Stored, _gate: Gate) -> NodeResult:
        self.reconciled.append(stored.id)
        if stored.id == GIT:
            self.run.artifacts[GIT] = Artifact(Path("/"), "1")
        return NodeResult(revision="done")


@pytest.fixture
def run(tmp_path: Path) -> RunContext:
    tree = discover(write_tree(tmp_path, {"x.yaml": ""}), root=tmp_path, namespace="default")
    return RunContext(tree, ObjectStore(), OPTIONS, tmp_path)


def added(run: RunContext, who: Id, spec: JsonObject | None = None) -> tuple[Stored, Gate]:
    stored, _ = run.store.add(who, {"spec": spec or {}})
    return stored, Gate(who, Level.NONE, (), run.store, run.tree)


async def test_releases_are_not_rendered_before_the_end_of_the_survey(run: RunContext) -> None:
    survey, inner = Survey(), Recorder(run)
    releases = SurveyedReleases(survey, inner, inner, run)
    assert await releases.reconcile(*added(run, RELEASE)) == NodeResult(skipped=UNCHANGED)
    assert (survey.inputs, inner.reconciled) == ({RELEASE: "sha256:1"}, [])
    survey.end()
    assert await releases.reconcile(*added(run, RELEASE)) == NodeResult(revision="done")
    assert (survey.inputs, inner.reconciled) == ({}, [RELEASE])


async def test_a_release_without_known_inputs_is_rendered(run: RunContext) -> None:
    survey, inner = Survey(), Recorder(run, digest=None)
    assert await SurveyedReleases(survey, inner, inner, run).reconcile(*added(run, RELEASE)) == NodeResult(
        revision="done"
    )
    assert survey.inputs == {}


async def test_sources_of_files_are_not_fetched_during_the_survey(run: RunContext) -> None:
    survey, inner = Survey(), Recorder(run)
    sources = SurveyedSources(survey, inner, run)
    assert await sources.reconcile(*added(run, GIT)) == NodeResult(skipped=UNCHANGED)
    assert await sources.reconcile(*added(run, HELM)) == NodeResult(revision="done")
    survey.end()
    assert await sources.reconcile(*added(run, GIT)) == NodeResult(revision="done")
    assert inner.reconciled == [HELM, GIT]


async def test_the_source_of_a_kustomization_is_fetched_once(run: RunContext) -> None:
    survey, inner = Survey(), Recorder(run)
    kustomizations = SurveyedBuilds(survey, inner, inner, run, sources_of)
    added(run, GIT)
    spec: JsonObject = {"sourceRef": {"kind": "GitRepository", "name": "far"}}
    for _ in range(2):
        await kustomizations.reconcile(*added(run, KUSTOMIZATION, spec))
    assert inner.reconciled == [GIT, KUSTOMIZATION, KUSTOMIZATION]


@pytest.mark.parametrize("spec", [{"suspend": True, "sourceRef": {"kind": "GitRepository", "name": "far"}}, {}])
async def test_a_suspended_or_sourceless_kustomization_fetches_no_source(run: RunContext, spec: JsonObject) -> None:
    inner = Recorder(run)
    added(run, GIT)
    await SurveyedBuilds(Survey(), inner, inner, run, sources_of).reconcile(*added(run, KUSTOMIZATION, spec))
    assert inner.reconciled == [KUSTOMIZATION]


async def test_a_source_that_cannot_be_fetched_fails_its_kustomization(run: RunContext) -> None:
    class Failing(Recorder):
        async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
            if stored.id == GIT:
                raise ReconcileError("no such branch")
            return await super().reconcile(stored, gate)

    added(run, GIT)
    inner = Failing(run)
    spec: JsonObject = {"sourceRef": {"kind": "GitRepository", "name": "far"}}
    with pytest.raises(ReconcileError, match="no such branch"):
        await SurveyedBuilds(Survey(), inner, inner, run, sources_of).reconcile(*added(run, KUSTOMIZATION, spec))
    assert inner.reconciled == []


@pytest.mark.parametrize("strict", [False, True])
async def test_a_release_of_an_unfetched_chart_is_noted_or_rendered_if_strict(run: RunContext, strict: bool) -> None:
    class Unsure(Recorder):
        async def inputs(self, stored: Stored, _gate: Gate) -> str | None:
            self.run.unsearched.add(stored.id)
            return self.digest

    survey, inner = Survey(strict=strict), Unsure(run)
    added(run, GIT)
    stored, gate = added(run, RELEASE)
    gate.reads.add(GIT)
    await SurveyedReleases(survey, inner, inner, run).reconcile(stored, gate)
    assert inner.reconciled == ([GIT, RELEASE] if strict else [])
    assert (set(survey.inputs), survey.unsearched) == ((set(), set()) if strict else ({RELEASE}, {RELEASE}))
