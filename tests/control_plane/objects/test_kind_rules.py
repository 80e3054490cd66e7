from wharfinger.control_plane.objects.kind_rules import Rules


def test_a_kind_without_rules_of_its_own() -> None:
    rules = Rules()

    assert rules.create({}) == rules.update({}, {}) == rules.status({}, {}) == []
    assert rules.warnings({}, None) == rules.status_warnings({}, {}) == []
    assert rules.subresources == {}
