import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.kube.names import is_key_part, is_label, is_qualified_name, is_subdomain

NAMES = st.text("aZ0-._/", max_size=8)


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a" * 63])
def test_valid_labels_are_accepted(name: str) -> None:
    assert is_label(name)
    assert is_subdomain(name)


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a\n", "a.b", "a" * 64, "ä"])
def test_invalid_labels_are_refused(name: str) -> None:
    assert not is_label(name)


def test_subdomains_are_checked() -> None:
    assert is_subdomain("a.b-c.0")
    assert is_subdomain("a" * 253)
    assert is_subdomain("a" * 53, most=53)
    assert not any(map(is_subdomain, ("", ".a", "a.", "a..b", "a.-b", "a\n", "a" * 254)))
    assert not is_subdomain("a" * 54, most=53)


def test_qualified_names_are_checked() -> None:
    assert all(map(is_qualified_name, ("a", "A_b.c", "example.com/name", "nvidia.com/gpu")))
    assert not any(map(is_qualified_name, ("", "/a", "a/", "a/b/c", "A/b", "a b", "a" * 64)))


@given(NAMES)
def test_qualified_names_follow_the_rule_of_the_api_server(name: str) -> None:
    """The rule is ``IsQualifiedName`` of apimachinery, written here as one pattern."""
    part, label = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    whole = re.fullmatch(rf"({label}(\.{label})*/)?{part}", name) is not None
    assert is_qualified_name(name) == whole
    assert is_key_part(name) == (re.fullmatch(part, name) is not None)
