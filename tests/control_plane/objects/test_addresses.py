import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.objects.addresses import (
    cidr_warnings,
    endpoint_ip_errors,
    ip_warnings,
    is_ipv6,
    legacy_cidr_errors,
    legacy_ip_errors,
)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("10.0.0.1", None),
        ("2001:DB8::1", None),
        ("10.0.0.01", "must not have leading 0s"),
        ("::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address"),
        ("10.0.0", "must be a valid IP address"),
        ("", "must be a valid IP address"),
    ],
)
def test_legacy_addresses_are_checked_unless_unchanged(value: str, said: str | None) -> None:
    errors = legacy_ip_errors("f", value)

    assert [said in error.message for error in errors if said] == ([True] if said else [])
    assert legacy_ip_errors("f", value, [value]) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("192.0.2.1", ""),
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),  # noqa: S104 - nothing is bound here
        ("127.0.0.1", "loopback"),
        ("fe80::1", "link-local range"),
        ("224.0.0.5", "link-local multicast"),
        ("ff02::1", "link-local multicast"),
        ("x", "must be a valid IP address"),
    ],
)
def test_unreachable_endpoint_addresses_are_refused(value: str, said: str) -> None:
    assert [said in error.message for error in endpoint_ip_errors("f", value)] == ([True] if said else [])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("10.0.0.0/24", ""),
        ("2001:db8::/64", ""),
        ("10.0.0.00/24", "must not have leading 0s"),
        ("10.0.0.0/024", "must not have leading 0s"),
        ("::ffff:10.0.0.0/120", "must not have an IPv4-mapped"),
        ("10.0.0.1/24", "must not have bits set beyond"),
        ("10.0.0.0", "must be a valid CIDR"),
        ("10.0.0.0/33", "must be a valid CIDR"),
    ],
)
def test_legacy_cidrs_are_checked_unless_unchanged(value: str, said: str) -> None:
    assert [said in error.message for error in legacy_cidr_errors("f", value)] == ([True] if said else [])
    assert legacy_cidr_errors("f", value, [value]) == []


def test_non_canonical_addresses_cause_warnings() -> None:
    assert ip_warnings("f", "10.0.0.01") == ['f: non-standard IP address "10.0.0.01" is invalid: use "10.0.0.1"']
    assert ip_warnings("f", "::ffff:1.2.3.4") == [
        'f: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"'
    ]
    assert ip_warnings("f", "2001:DB8::1") == [
        'f: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'
    ]
    assert ip_warnings("f", "10.0.0.1") == ip_warnings("f", "x") == []
    assert cidr_warnings("f", "10.0.0.1/24") == [
        'f: CIDR value "10.0.0.1/24" is ambiguous in this context (should be "10.0.0.0/24" or "10.0.0.1/32"?)'
    ]
    assert cidr_warnings("f", "010.0.0.0/24") == [
        'f: non-standard CIDR value "010.0.0.0/24" is invalid: use "10.0.0.0/24"'
    ]
    assert cidr_warnings("f", "2001:DB8::/64") == [
        'f: IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical format ("2001:db8::/64")'
    ]
    assert cidr_warnings("f", "10.0.0.0/24") == cidr_warnings("f", "x") == []


def test_ipv6_addresses_are_recognized() -> None:
    assert is_ipv6("fd00::1")
    assert not is_ipv6("::ffff:1.2.3.4")
    assert not is_ipv6("10.0.0.1")


@given(st.text(alphabet="0123456789abcf.:/% ", max_size=24))
def test_arbitrary_texts_do_not_crash_the_checks(text: str) -> None:
    legacy_ip_errors("f", text), endpoint_ip_errors("f", text), legacy_cidr_errors("f", text)
    ip_warnings("f", text), cidr_warnings("f", text)
