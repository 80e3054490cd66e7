"""The findings of a build, and the file and line of each object."""

from tests.offline.support import flux_id
from wharfinger.offline.checking.findings import Finding, Rule, Severity, build_findings, places_of
from wharfinger.offline.orchestrator.result import Failure, Manifest, Notice, Result
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id

A, B = flux_id("Kustomization", "a"), flux_id("Kustomization", "b")
MAP, OWN = Id("ConfigMap", "n", "rendered"), Id("ConfigMap", "n", "declared")


def test_a_build_reports_failures_orphans_and_notices() -> None:
    failed = {A: Failure(A, "why", Place("a.yaml", 1)), B: Failure(B, "waits", None, (A,))}
    result = Result({}, failed, {A: Place("c.yaml", 2)}, (Notice("odd", B),))
    assert [(each.rule, each.severity) for each in build_findings(result)] == [
        (Rule.BUILD, Severity.ERROR),
        (Rule.BLOCKED, Severity.ERROR),
        (Rule.ORPHAN, Severity.WARNING),
        (Rule.NOTICE, Severity.WARNING),
    ]


def test_the_place_of_an_object_is_its_file_or_its_producer_file() -> None:
    manifests = {A: (Manifest(MAP, {}), Manifest(OWN, {})), B: (Manifest(Id("ConfigMap", "n", "nowhere"), {}),)}
    result = Result(manifests, {}, {}, places={A: Place("ks.yaml", 3), OWN: Place("map.yaml", 1)})
    assert {who.name: str(place) for who, place in places_of(result).items()} == {
        "rendered": "ks.yaml:3",
        "declared": "map.yaml:1",
    }


def test_findings_are_printed_with_place_severity_and_object() -> None:
    finding = Finding(Rule.SERVER, Severity.ERROR, "refused", MAP, Place("a.yaml", 1))
    assert str(finding) == "a.yaml:1: error: ConfigMap n/rendered: refused"
    assert str(Finding(Rule.UNDEFINED, Severity.WARNING, "x")) == "warning: x"
