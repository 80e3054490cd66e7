"""The part of a result that filters choose."""

import pytest

from wharfinger.offline.orchestrator.filter import parse_filter
from wharfinger.offline.orchestrator.result import Failure, Manifest, Notice, Result
from wharfinger.offline.orchestrator.selection import (
    SelectionError,
    candidates_of,
    check_filters,
    selected,
    selection_of,
)
from wharfinger.offline.store.kinds import HELM_RELEASE, KUSTOMIZATION
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id

FILE = Id("Files", "", "ks.yaml")
APPS = Id(KUSTOMIZATION, "flux-system", "apps")
DATA = Id(KUSTOMIZATION, "flux-system", "data")
WEB, API, OLD = (Id(HELM_RELEASE, "apps", name) for name in ("web", "api", "old"))
VALUES, WEB_MAP, API_MAP = (Id("ConfigMap", "apps", name) for name in ("values", "web-map", "api-map"))


def manifest(who: Id, **labels: str) -> Manifest:
    return Manifest(who, {"metadata": {"name": who.name, "labels": {**labels}}})


RESULT = Result(
    manifests={
        FILE: (manifest(APPS), manifest(DATA)),
        APPS: (manifest(WEB, team="shop"), manifest(API)),
        DATA: (manifest(VALUES),),
        WEB: (manifest(WEB_MAP),),
        API: (manifest(API_MAP),),
    },
    failed={OLD: Failure(OLD, "broken", Place("old.yaml", 1))},
    orphans={},
    warnings=(Notice("about web", WEB), Notice("about api", API), Notice("about the tree")),
    depends_on={WEB: (VALUES,), API: (), OLD: ()},
    places={
        APPS: Place("ks.yaml", 1),
        DATA: Place("ks.yaml", 9),
        WEB: Place("apps/web.yaml", 1),
        OLD: Place("old.yaml", 1),
    },
)


def chosen(*filters: str) -> Result:
    return selected(RESULT, selection_of(RESULT, [parse_filter(text) for text in filters]))


def names(result: Result) -> list[str]:
    return [each.id.name for each in result.objects]


def test_a_chosen_node_includes_all_objects_that_it_makes() -> None:
    assert names(chosen("HelmRelease/web")) == ["web-map", "web"]
    assert names(chosen("Kustomization/apps")) == ["api-map", "web-map", "api", "web", "apps"]
    assert names(chosen("ConfigMap/web-map")) == ["web-map"]
    assert names(chosen("ConfigMap/web-map", "ConfigMap/values")) == ["values", "web-map"]
    assert names(chosen("label=team=shop")) == ["web-map", "web"]


def test_needed_objects_contribute_verdicts_but_are_not_returned() -> None:
    found = selection_of(RESULT, [parse_filter("HelmRelease/web")])
    assert found.chosen == {WEB, WEB_MAP}
    assert found.needed == {VALUES, DATA, APPS, FILE}
    result = chosen("HelmRelease/web")
    assert [str(each) for each in result.warnings] == ["HelmRelease apps/web: about web", "about the tree"]
    assert not result.failed
    assert set(result.depends_on) == {WEB}


def test_failed_nodes_can_be_chosen() -> None:
    assert set(chosen("HelmRelease/old").failed) == {OLD}
    assert set(chosen("path=old.yaml").failed) == {OLD}


def test_a_rendered_object_has_the_file_of_its_maker() -> None:
    files = {each.id: each.file for each in candidates_of(RESULT)}
    assert (files[WEB], files[WEB_MAP], files[API], files[API_MAP]) == (
        "apps/web.yaml",
        "apps/web.yaml",
        "ks.yaml",
        "ks.yaml",
    )


def test_a_filter_without_a_match_in_any_result_is_refused() -> None:
    wrong = [parse_filter("HelmRelease/wbe")]
    with pytest.raises(SelectionError) as caught:
        check_filters(wrong, RESULT)
    assert str(caught.value) == (
        "filter 'HelmRelease/wbe' selects nothing: no object has the name 'wbe' among those with kind=HelmRelease; nearest: web; "
        "one of the failed nodes might have made a matching object; the first failure: old.yaml:1: HelmRelease apps/old: broken"
    )
    check_filters([parse_filter("HelmRelease/web")], Result({}, {}, {}), RESULT)
