from wharfinger.control_plane.api.core.validation import CORE_RULES
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.formats.json.value import JsonObject


def test_rules_are_of_kinds_that_are_served() -> None:
    assert set(CORE_RULES) <= {kind.group_kind for kind in BUILTIN_KINDS}


def test_accounts_are_warned_of_once() -> None:
    account: JsonObject = {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}}
    rules = CORE_RULES["ServiceAccount"]

    assert len(rules.warnings(account, {})) == 1
    assert rules.warnings(account, account) == rules.warnings({}, None) == []
