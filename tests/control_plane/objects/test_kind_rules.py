from wharfinger.control_plane.objects.kind_rules import Rules


def test_the_default_rules_accept_everything() -> None:
    rules = Rules()

    assert rules.create({}) == rules.update({}, {}) == rules.status({}, {}) == []
    assert rules.warnings({}, None) == rules.status_warnings({}, {}) == []
    assert rules.subresources == {}
