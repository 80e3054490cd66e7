"""Results: failures are grouped by cause, and each object is listed once."""

from tests.offline.support import flux_id
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.orchestrator.result import Failure, Manifest, Notice, Result
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id

A, B = flux_id("Kustomization", "a"), flux_id("Kustomization", "b")


def test_the_first_of_two_producers_determines_an_object() -> None:
    who = Id("ConfigMap", "n", "x")
    one: JsonObject = {"data": {"by": "a"}}
    other: JsonObject = {"data": {"by": "b"}}
    result = Result({B: (Manifest(who, other),), A: (Manifest(who, one),)}, {}, {})
    assert [each.object for each in result.objects] == [one]


def test_failures_and_notices_have_texts_and_causes() -> None:
    result = Result({}, {A: Failure(A, "why", Place("a.yaml", 1)), B: Failure(B, "waits", None, (A,))}, {})
    assert str(result.failed[A]) == "a.yaml:1: Kustomization flux-system/a: why"
    assert str(result.failed[B]) == "Kustomization flux-system/b: waits"
    assert result.failed[A].is_primary
    assert result.blocked == {B: (A,)}
    assert (str(Notice("x")), str(Notice("x", A))) == ("x", "Kustomization flux-system/a: x")
