"""Filters: their syntax, their matches, and the hint if they match nothing."""

import pytest

from wharfinger.offline.orchestrator.filter import Candidate, FilterError, parse_filter, unmatched
from wharfinger.offline.store.kinds import HELM_RELEASE
from wharfinger.runtime.fixpoint.model import Id

WEB = Candidate(Id(HELM_RELEASE, "apps", "web"), {"team": "shop", "tier": "front"}, "apps/web/release.yaml")
API = Candidate(Id(HELM_RELEASE, "apps", "api-1"), {"team": "core"}, "apps/api/release.yaml")
MAP = Candidate(Id("ConfigMap", "flux-system", "web"), {}, "clusters/a/map.yaml")
EVERY = (WEB, API, MAP)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("kind=HelmRelease", [WEB, API]),
        ("kind=helmrelease", [WEB, API]),
        ("kind=HelmRelease.helm.toolkit.fluxcd.io", [WEB, API]),
        ("kind=HelmRelease.other.dev", []),
        ("kind=*Map", [MAP]),
        ("name=web", [WEB, MAP]),
        ("name=web,kind=HelmRelease", [WEB]),
        ("name=web,name=api-?", [WEB, API, MAP]),
        ("namespace=apps, name=api-*", [API]),
        ("label=team", [WEB, API]),
        ("label=team=shop", [WEB]),
        ("label=team=*o*", [WEB, API]),
        ("label=team=shop,label=team=core", [WEB, API]),
        ("path=apps", [WEB, API]),
        ("path=./apps/web/", [WEB]),
        ("path=apps/web/release.yaml", [WEB]),
        ("path=app", []),
        ("path=*/map.yaml", [MAP]),
        ("path=.", [WEB, API, MAP]),
        ("HelmRelease", [WEB, API]),
        ("HelmRelease/web", [WEB]),
        ("apps/HelmRelease/*", [WEB, API]),
        ("other/HelmRelease/web", []),
    ],
)
def test_filters_match_objects_by_their_fields(text: str, chosen: list[Candidate]) -> None:
    one = parse_filter(text)
    assert [each for each in EVERY if one.matches(each)] == chosen
    assert (unmatched([one], EVERY) == ()) == bool(chosen)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected KIND, KIND/NAME, NAMESPACE/KIND/NAME, or pairs KEY=VALUE"),
        ("a/b/c/d", "expected KIND, KIND/NAME"),
        ("kind=", "found 'kind='"),
        ("kinds=HelmRelease", "found 'kinds=HelmRelease'; did you mean kind?"),
        ("kind=HelmRelease,web", "found 'web'"),
        ("path=../x", "the path '../x' leads out of the root"),
    ],
)
def test_invalid_filters_are_refused(text: str, told: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("HelmRelease/wbe", "no object has the name 'wbe' among those with kind=HelmRelease; nearest: web"),
        ("kind=HelmRelaese", "no object has the kind 'HelmRelaese'; nearest: HelmRelease"),
        ("name=zzz", "no object has the name 'zzz'; there are: api-1, web"),
        (
            "namespace=app,kind=ConfigMap",
            "no object has the namespace 'app' among those with kind=ConfigMap; there are: flux-system",
        ),
        ("label=team=shoop", "no object has the label 'team=shoop'; nearest: team=shop"),
        ("kind=ConfigMap,label=team", "no object has the label 'team' among those with kind=ConfigMap"),
        ("path=apps/wbe/release.yaml", "; nearest: apps/web/release.yaml"),
    ],
)
def test_the_hint_lists_the_nearest_values(text: str, told: str) -> None:
    assert told in parse_filter(text).nearest(EVERY)


def test_the_hint_without_objects_lists_no_values() -> None:
    assert parse_filter("Pod/x").nearest(()) == "no object has the kind 'Pod'"


@pytest.mark.parametrize(
    ("text", "names_nodes"),
    [
        ("HelmRelease/web", True),
        ("kind=helmrelease,kind=Kustomization", True),
        ("kind=HelmRelease,kind=Deployment", False),
        ("kind=Helm*", False),
        ("name=web", False),
        ("Deployment/web", False),
    ],
)
def test_filters_limited_to_node_kinds_are_recognized(text: str, names_nodes: bool) -> None:
    assert parse_filter(text).names_nodes is names_nodes
