"""The controllers of a survey, over controllers that record their calls."""

from pathlib import Path

import pytest

from tests.offline.support import OPTIONS, flux_id, write_tree
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.controller import Desk, Produced
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

    def __init__(self, desk: Desk, digest: str | None = "sha256:1") -> None:
        self.desk = desk
        self.digest = digest
        self.reconciled: list[Id] = []

    async def inputs(self, _stored: Stored, _gate: Gate) -> str | None:
        return self.digest

    async def reconcile(self, stored: Stored, _gate: Gate) -> Produced:
        self.reconciled.append(stored.id)
        if stored.id == GIT:
            self.desk.artifacts[GIT] = Artifact(Path("/"), "1")
        return Produced(revision="done")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    tree = discover(write_tree(tmp_path, {"x.yaml": ""}), root=tmp_path, namespace="default")
    return Desk(tree, ObjectStore(), OPTIONS, tmp_path)


def added(desk: Desk, who: Id, spec: JsonObject | None = None) -> tuple[Stored, Gate]:
    stored, _ = desk.store.add(who, {"spec": spec or {}})
    return stored, Gate(who, Level.NONE, (), desk.store, desk.tree)


async def test_releases_record_their_inputs_until_the_end_of_the_survey(desk: Desk) -> None:
    survey, inner = Survey(), Recorder(desk)
    releases = SurveyedReleases(survey, inner, inner, desk)
    assert await releases.reconcile(*added(desk, RELEASE)) == Produced(skipped=UNCHANGED)
    assert (survey.inputs, inner.reconciled) == ({RELEASE: "sha256:1"}, [])
    survey.end()
    assert await releases.reconcile(*added(desk, RELEASE)) == Produced(revision="done")
    assert (survey.inputs, inner.reconciled) == ({}, [RELEASE])


async def test_a_release_without_known_inputs_is_rendered(desk: Desk) -> None:
    survey, inner = Survey(), Recorder(desk, digest=None)
    assert await SurveyedReleases(survey, inner, inner, desk).reconcile(*added(desk, RELEASE)) == Produced(
        revision="done"
    )
    assert survey.inputs == {}


async def test_sources_with_files_are_not_fetched(desk: Desk) -> None:
    survey, inner = Survey(), Recorder(desk)
    sources = SurveyedSources(survey, inner, desk)
    assert await sources.reconcile(*added(desk, GIT)) == Produced(skipped=UNCHANGED)
    assert await sources.reconcile(*added(desk, HELM)) == Produced(revision="done")
    survey.end()
    assert await sources.reconcile(*added(desk, GIT)) == Produced(revision="done")
    assert inner.reconciled == [HELM, GIT]


async def test_a_kustomization_has_its_source_fetched_once(desk: Desk) -> None:
    survey, inner = Survey(), Recorder(desk)
    kustomizations = SurveyedBuilds(survey, inner, inner, desk, sources_of)
    added(desk, GIT)
    spec: JsonObject = {"sourceRef": {"kind": "GitRepository", "name": "far"}}
    for _ in range(2):
        await kustomizations.reconcile(*added(desk, KUSTOMIZATION, spec))
    assert inner.reconciled == [GIT, KUSTOMIZATION, KUSTOMIZATION]


@pytest.mark.parametrize("spec", [{"suspend": True, "sourceRef": {"kind": "GitRepository", "name": "far"}}, {}])
async def test_a_kustomization_that_needs_no_files_fetches_none(desk: Desk, spec: JsonObject) -> None:
    inner = Recorder(desk)
    added(desk, GIT)
    await SurveyedBuilds(Survey(), inner, inner, desk, sources_of).reconcile(*added(desk, KUSTOMIZATION, spec))
    assert inner.reconciled == [KUSTOMIZATION]


async def test_a_source_that_cannot_be_fetched_fails_its_kustomization(desk: Desk) -> None:
    class Failing(Recorder):
        async def reconcile(self, stored: Stored, gate: Gate) -> Produced:
            if stored.id == GIT:
                raise ReconcileError("no such branch")
            return await super().reconcile(stored, gate)

    added(desk, GIT)
    inner = Failing(desk)
    spec: JsonObject = {"sourceRef": {"kind": "GitRepository", "name": "far"}}
    with pytest.raises(ReconcileError, match="no such branch"):
        await SurveyedBuilds(Survey(), inner, inner, desk, sources_of).reconcile(*added(desk, KUSTOMIZATION, spec))
    assert inner.reconciled == []


@pytest.mark.parametrize("strict", [False, True])
async def test_a_release_of_a_chart_that_was_never_fetched_is_noted_or_rendered(desk: Desk, strict: bool) -> None:
    class Unsure(Recorder):
        async def inputs(self, stored: Stored, _gate: Gate) -> str | None:
            self.desk.unsearched.add(stored.id)
            return self.digest

    survey, inner = Survey(strict=strict), Unsure(desk)
    added(desk, GIT)
    stored, gate = added(desk, RELEASE)
    gate.reads.add(GIT)
    await SurveyedReleases(survey, inner, inner, desk).reconcile(stored, gate)
    assert inner.reconciled == ([GIT, RELEASE] if strict else [])
    assert (set(survey.inputs), survey.unsearched) == ((set(), set()) if strict else ({RELEASE}, {RELEASE}))
