"""The formats of names: valid names, and the number of errors for invalid ones. The recordings cover the texts of the errors."""

from collections.abc import Callable

import pytest

from wharfinger.control_plane.objects import names


@pytest.mark.parametrize(
    ("rule", "text", "count"),
    [
        (names.dns_label_problems, "a-1", 0),
        (names.dns_label_problems, "a.b", 1),
        (names.dns_label_problems, "A" * 64, 2),
        (names.dns_1035_label_problems, "1a", 1),
        (names.namespace_name_problems, "kube", 0),
        (names.subdomain_problems, "a.b-c", 0),
        (names.subdomain_problems, "a..b", 1),
        (names.subdomain_problems, "a\n", 1),
        (names.underscored_subdomain_problems, "_a.b", 0),
        (names.underscored_subdomain_problems, "a__", 1),
        (names.config_key_problems, "a.B_c", 0),
        (names.config_key_problems, "..", 1),
        (names.config_key_problems, "..a b", 2),
        (names.environment_name_problems, "A b", 0),
        (names.environment_name_problems, "", 1),
        (names.environment_name_problems, "a=b", 1),
        (names.port_name_problems, "http-1", 0),
        (names.port_name_problems, "-A--", 4),
        (names.header_problems, "X-A", 0),
        (names.header_problems, "a b", 1),
        (names.ip_problems, "1.2.3.4", 0),
        (names.ip_problems, "01.2.3.4", 0),
        (names.ip_problems, "fe80::1%eth0", 1),
        (names.ip_problems, "1.2.3", 1),
    ],
)
def test_invalid_names_are_reported(rule: Callable[[str], list[str]], text: str, count: int) -> None:
    assert len(rule(text)) == count


def test_invalid_port_numbers_are_reported() -> None:
    assert names.port_problems(80) == []
    assert names.port_problems(0) == ["must be between 1 and 65535, inclusive"]


def test_a_rule_without_examples_shows_its_regex() -> None:
    assert names.rule("what", "a+") == "what (regex used for validation is 'a+')"
