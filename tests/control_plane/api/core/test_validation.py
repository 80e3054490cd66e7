from wharfinger.control_plane.api.core.validation import CORE_RULES
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.formats.json.value import JsonObject


def test_all_rules_belong_to_served_kinds() -> None:
    assert set(CORE_RULES) <= {kind.group_kind for kind in BUILTIN_KINDS}


def test_warnings_about_accounts_are_not_repeated() -> None:
    account: JsonObject = {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}}
    rules = CORE_RULES["ServiceAccount"]

    assert len(rules.warnings(account, {})) == 1
    assert rules.warnings(account, account) == rules.warnings({}, None) == []
