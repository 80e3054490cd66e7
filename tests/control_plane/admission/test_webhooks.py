"""The choice of webhooks for a write, and the effect of their verdicts."""

import pytest
from msgspec.structs import replace

from tests.control_plane.support.bench import refused
from tests.control_plane.support.policy_asking import RULE, asked, stored
from wharfinger.control_plane.admission.webhook_reviews import Verdict
from wharfinger.control_plane.admission.webhooks import VERDICTS, VerdictsNeededError, Webhooks
from wharfinger.control_plane.api.common.admission import Admission
from wharfinger.formats.json.value import JsonObject, JsonValue


def configuration(name: str = "c", **webhook: JsonValue) -> JsonObject:
    """Return a webhook configuration with one webhook, ``<name>.example.com``."""
    one: JsonObject = {
        "name": f"{name}.example.com",
        "clientConfig": {"url": "https://127.0.0.1/x"},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **webhook,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [one],
    }


def world(*configurations: JsonObject) -> tuple[Admission, Webhooks]:
    admission, _, backend = asked()
    for one in configurations:
        stored(backend, "validatingwebhookconfigurations", one)
    return admission, Webhooks(backend)


def judged(admission: Admission, webhooks: Webhooks, *verdicts: Verdict) -> list[str]:
    """Check a write that needs answers of webhooks. Give these verdicts as the answers, in order, and return the names of the
    webhooks that were called.
    """
    try:
        webhooks.judge(admission)
    except VerdictsNeededError as needed:
        calls = needed.calls
    else:
        return []
    answers = verdicts or (Verdict(allowed=True),) * len(calls)
    token = VERDICTS.set({call.key: one for call, one in zip(calls, answers, strict=True)})
    try:
        webhooks.judge(admission)
    finally:
        VERDICTS.reset(token)
    return [call.webhook for call in calls]


def test_no_webhook_is_called_without_a_configuration() -> None:
    admission, webhooks = world()
    assert not webhooks
    assert judged(admission, webhooks) == []


def test_matching_webhooks_are_called_in_the_order_of_their_names() -> None:
    other: JsonObject = {**RULE, "resources": ["secrets"]}
    admission, webhooks = world(configuration("b"), configuration("a"), configuration("c", rules=[other]))
    assert bool(webhooks)
    assert judged(admission, webhooks) == ["a.example.com", "b.example.com"]


@pytest.mark.parametrize(("expression", "called"), [("object.metadata.name == 'a'", True), ("false", False)])
def test_webhooks_are_called_if_their_conditions_match(expression: str, called: bool) -> None:
    admission, webhooks = world(configuration(matchConditions=[{"name": "x", "expression": expression}]))
    assert judged(admission, webhooks) == (["c.example.com"] if called else [])


def test_a_failed_match_condition_follows_the_failure_policy() -> None:
    wrong: JsonValue = [{"name": "x", "expression": "object.nope == 1"}]
    admission, webhooks = world(configuration(matchConditions=wrong))
    with refused(500, "InternalError", 'failed calling webhook "c.example.com"'):
        judged(admission, webhooks)
    admission, webhooks = world(configuration(matchConditions=wrong, failurePolicy="Ignore"))
    assert judged(admission, webhooks) == []


def test_a_denial_refuses_the_request_and_passes_warnings_on() -> None:
    admission, webhooks = world(configuration("a"), configuration("b"))
    judged(admission, webhooks, Verdict(allowed=True, warnings=("careful",)), Verdict(allowed=True))
    assert admission.warnings == ["careful"]
    with refused(403, "Forbidden", 'admission webhook "b.example.com" denied the request: no'):
        judged(admission, webhooks, Verdict(allowed=True), Verdict(code=403, reason="Forbidden", message="no"))


def test_a_failed_webhook_follows_the_failure_policy() -> None:
    admission, webhooks = world(configuration())
    with refused(500, "InternalError", "failed to call webhook: away"):
        judged(admission, webhooks, Verdict(failed="away"))
    admission, webhooks = world(configuration(failurePolicy="Ignore"))
    assert judged(admission, webhooks, Verdict(failed="away")) == ["c.example.com"]


def test_a_dry_run_needs_a_webhook_without_side_effects() -> None:
    admission, webhooks = world(configuration())
    assert judged(replace(admission, dry_run=True), webhooks) == ["c.example.com"]


def test_webhook_configurations_are_exempt_from_webhooks() -> None:
    rule: JsonObject = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    _, webhooks = world(configuration(rules=[rule]))
    admission, _, _ = asked("validatingwebhookconfigurations", "admissionregistration.k8s.io")
    assert judged(admission, webhooks) == []
