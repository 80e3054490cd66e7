import pytest

from wharfinger.control_plane.objects.name_rules import address_name, any_name, label_name, segment_name, subdomain_name


def test_a_prefix_may_end_with_a_dash() -> None:
    assert subdomain_name("a-", prefix=True) == []
    assert subdomain_name("a-", prefix=False)
    assert segment_name("..", prefix=True) == []
    assert segment_name("..", prefix=False) == ["may not be '..'"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("10.0.0.1", ""), ("fd00::1", ""), ("FD00::1", "must be in canonical form"), ("x", "must be a valid IP address")],
)
def test_names_of_ip_addresses_must_be_canonical(name: str, said: str) -> None:
    assert [said in problem for problem in address_name(name, False)] == ([True] if said else [])


def test_other_name_rules_refuse_invalid_names() -> None:
    assert any_name("", False) == []
    assert label_name("a.b", False) == ["must not contain dots"]
    assert segment_name("a/%", False) == ["may not contain '/'", "may not contain '%'"]
