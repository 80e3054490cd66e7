"""The webhooks of all hooks of a package, combined into one set."""

from dataclasses import replace
from pathlib import Path

import pytest

from wharfinger.hooks.config.bindings import UNBOUND, AdmissionBinding, AdmissionRule, ConversionBinding, HookConfig
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.webhooks.addresses import ReviewKind
from wharfinger.hooks.webhooks.bound_webhooks import bound_webhooks

RULE = AdmissionRule(("",), ("v1",), ("pods",), ("CREATE",))


def hook(name: str, config: HookConfig) -> Hook:
    return Hook(name, Path("/x"), (), Path("/"), config)


def judging(name: str, *webhooks: str, rule: AdmissionRule = RULE) -> Hook:
    return hook(name, replace(UNBOUND, validating=tuple(AdmissionBinding(one, (rule,)) for one in webhooks)))


def converting(name: str, *pairs: tuple[str, str]) -> Hook:
    return hook(name, replace(UNBOUND, conversions=(ConversionBinding(name, "a.b.io", pairs),)))


def test_webhooks_are_found_by_their_url_names() -> None:
    bound = bound_webhooks([judging("h", "a.example.com"), judging("i", "b.example.com")], None)
    assert bound
    found = bound.admission(ReviewKind.VALIDATING, "b-example-com")
    assert found is not None
    assert found.hook.name == "i"
    assert bound.admission(ReviewKind.MUTATING, "b-example-com") is None
    assert not bound_webhooks([hook("h", UNBOUND)], None)


@pytest.mark.parametrize("second", ["a.b.example.com", "a-b.example.com", "%"])
def test_webhook_names_must_differ_within_a_package(second: str) -> None:
    with pytest.raises(HookConfigError, match="choose another name"):
        bound_webhooks([judging("h", "a.b.example.com"), judging("i", second)], None)


def test_conversions_of_all_hooks_form_one_graph_with_the_first_declaration() -> None:
    bound = bound_webhooks([converting("h", ("v1", "v2")), converting("i", ("v1", "v2"), ("v2", "v3"))], None)
    pairs = bound.conversions["a.b.io"].pairs
    assert {pair: one.name for pair, (one, _) in pairs.items()} == {("v1", "v2"): "h", ("v2", "v3"): "i"}


def test_application_webhooks_are_limited_to_its_namespace() -> None:
    with pytest.raises(HookConfigError, match="concerns the whole cluster"):
        bound_webhooks([converting("h", ("v1", "v2"))], "prod")
    with pytest.raises(HookConfigError, match="scope is invalid: Cluster"):
        bound_webhooks([judging("h", "a.example.com", rule=replace(RULE, scope="Cluster"))], "prod")
    assert bound_webhooks([judging("h", "a.example.com")], "prod").namespace == "prod"
