"""The webhook configuration objects for an API server. The embedded control plane must accept them."""

from dataclasses import replace

import pytest

from tests.control_plane.support.bench import made, new_backend, served
from tests.hooks.webhooks.test_bound_webhooks import RULE, hook, judging
from wharfinger.control_plane.backend import Backend
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.hooks.config.bindings import UNBOUND, AdmissionBinding
from wharfinger.hooks.webhooks.addresses import ReviewKind
from wharfinger.hooks.webhooks.bound_webhooks import bound_webhooks
from wharfinger.hooks.webhooks.configurations import (
    CONFIGURATIONS,
    OWN_CONDITION,
    Server,
    configuration_name,
    configurations,
    conversion_patch,
    no_conversion_patch,
)
from wharfinger.kube.names import MAX_SUBDOMAIN, is_subdomain

URL = Server("PEM", url="https://127.0.0.1:1")
SERVICE = Server("PEM", service=("ns", "svc", 443))


def stored(backend: Backend, obj: JsonObject) -> JsonObject:
    plural = f"{find_str(obj, 'kind').lower()}s"
    return made(backend, served(backend, "admissionregistration.k8s.io", "v1", plural), obj, namespace="")


@pytest.mark.parametrize("server", [URL, SERVICE])
def test_webhook_configurations_are_accepted_by_an_api_server(server: Server) -> None:
    selectors: tuple[JsonObject, JsonObject] = {"matchLabels": {"x": "y"}}, {"matchLabels": {"n": "m"}}
    mine = (("mine", "true"),)
    binding = AdmissionBinding("a.b.example.com", (RULE,), *selectors, mine, "Ignore", "NoneOnDryRun", 7)
    one = hook("h", replace(UNBOUND, validating=(binding,), mutating=(binding,)))
    wanted = configurations("crons", bound_webhooks([one], None), server, "sys", "wharfinger.dev")
    assert set(wanted) == set(CONFIGURATIONS)
    backend = new_backend()
    for kind, obj in wanted.items():
        (webhook,) = find_list(stored(backend, obj), "webhooks")
        assert find(webhook, "failurePolicy") == "Ignore"
        assert find(webhook, "timeoutSeconds") == 7
        assert find(webhook, "sideEffects") == "NoneOnDryRun"
        assert find(webhook, "objectSelector") == {"matchLabels": {"x": "y"}}
        assert [find(one, "name") for one in find_list(webhook, "matchConditions")] == [OWN_CONDITION, "mine"]
        path = f"/hooks/crons/{kind}/a-b-example-com"
        told = find(webhook, "clientConfig", "url") or find(webhook, "clientConfig", "service", "path")
        assert str(told).endswith(path)


def test_application_webhooks_select_only_its_namespace() -> None:
    bound = bound_webhooks([judging("h", "a.example.com")], "prod")
    wanted = configurations("prod.web", bound, URL, "sys", "wharfinger.dev")
    (webhook,) = find_list(wanted[ReviewKind.VALIDATING], "webhooks")
    terms = find(webhook, "namespaceSelector", "matchExpressions")
    assert terms == [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["prod"]}]
    assert find(webhook, "rules", 0, "scope") == "Namespaced"


@pytest.mark.parametrize("package", ["crons", "prod.web", f"{'n' * 63}.{'a' * 250}"])
def test_configuration_names_are_valid_and_distinct(package: str) -> None:
    name = configuration_name(package)
    assert is_subdomain(name)
    assert len(name) <= MAX_SUBDOMAIN
    assert name != configuration_name(f"{package}a")


def test_conversion_patches_set_and_clear_the_webhook() -> None:
    begun = conversion_patch("crons", "a.b.io", URL)
    assert find(begun, "spec", "conversion", "strategy") == "Webhook"
    url = find(begun, "spec", "conversion", "webhook", "clientConfig", "url")
    assert url == "https://127.0.0.1:1/hooks/crons/conversion/a.b.io"
    assert find(no_conversion_patch(), "spec", "conversion") == {"strategy": "None", "webhook": None}
