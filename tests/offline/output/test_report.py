"""The report of a build: root causes, and the nodes that they block."""

from tests.offline.support import flux_id
from wharfinger.offline.orchestrator.result import Failure, Notice, Result
from wharfinger.offline.output.report import causes_of, report_text, summary
from wharfinger.offline.store.store import Place

ROOT, MIDDLE, LEAF, OTHER = (flux_id("Kustomization", name) for name in ("root", "middle", "leaf", "other"))
RESULT = Result(
    manifests={},
    failed={
        LEAF: Failure(LEAF, "waits", None, (MIDDLE,)),
        MIDDLE: Failure(MIDDLE, "waits", None, (ROOT,)),
        OTHER: Failure(OTHER, "another reason", Place("b.yaml", 1)),
        ROOT: Failure(ROOT, "the reason", Place("a.yaml", 3)),
    },
    orphans={flux_id("HelmRelease", "lost"): Place("c.yaml", 7)},
    warnings=(Notice("of the tree"), Notice("of one", LEAF)),
)


def test_derived_failures_are_grouped_under_their_root() -> None:
    assert causes_of(RESULT) == {OTHER: (), ROOT: (LEAF, MIDDLE)}
    assert report_text(RESULT).splitlines() == [
        "error: b.yaml:1: Kustomization flux-system/other: another reason",
        "error: a.yaml:3: Kustomization flux-system/root: the reason",
        "  blocks Kustomization flux-system/leaf, Kustomization flux-system/middle",
        "warning: c.yaml:7: HelmRelease flux-system/lost: nothing builds it; add the file to a kustomization.yaml, or delete it",
        "warning: of the tree",
        "warning: Kustomization flux-system/leaf: of one",
    ]
    assert summary(RESULT) == "0 objects built; 2 failed, and 2 blocked by them"


def test_the_report_of_an_empty_result_is_empty() -> None:
    assert report_text(Result({}, {}, {})) == ""
    assert summary(Result({}, {}, {})) == "0 objects built"


def test_failures_in_a_cycle_are_each_reported() -> None:
    circle = {LEAF: Failure(LEAF, "x", None, (MIDDLE,)), MIDDLE: Failure(MIDDLE, "y", None, (LEAF,))}
    assert causes_of(Result({}, circle, {})) == {LEAF: (), MIDDLE: ()}
