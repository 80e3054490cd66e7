"""The classes of bindings and their default values."""

from wharfinger.hooks.config.bindings import UNBOUND, AdmissionBinding, AdmissionRule, ConversionBinding, HookScope


def test_unbound_hook_has_no_order_and_no_binding() -> None:
    orders = (UNBOUND.on_startup, UNBOUND.before_helm, UNBOUND.after_helm, UNBOUND.before_all, UNBOUND.after_all)
    assert set(orders) == {None}
    assert (UNBOUND.kubernetes, UNBOUND.schedules, UNBOUND.validating, UNBOUND.mutating, UNBOUND.conversions) == (
        (),
    ) * 5
    assert (UNBOUND.min_interval, UNBOUND.burst, UNBOUND.version, UNBOUND.warnings) == (None, 1, "v1", ())


def test_webhook_bindings_have_default_values() -> None:
    binding = AdmissionBinding("a.b.c", (AdmissionRule(("",), ("v1",), ("pods",), ("CREATE",)),))
    assert (binding.failure_policy, binding.side_effects, binding.timeout_s) == ("Fail", "None", 10)
    assert (binding.object_selector, binding.namespace_selector, binding.match_conditions) == ({}, {}, ())
    assert binding.rules[0].scope == "*"
    assert ConversionBinding("c", "crd", (("v1", "v2"),)).include_snapshots_from == ()


def test_hook_scopes_are_package_and_global() -> None:
    assert [*HookScope] == ["package", "global"]
