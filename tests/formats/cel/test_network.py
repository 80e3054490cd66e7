"""Addresses, networks and URLs in CEL rules."""

import pytest

from wharfinger.formats.cel import network as n


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("2001:DB8:0::1", "2001:db8::1"), ("0:0::0", "::")],
)
def test_ip_addresses_are_parsed_in_canonical_form(text: str, canonical: str) -> None:
    assert n.is_ip(text)
    assert n.ip(text) == {"ip": canonical}
    assert n.is_canonical(text) is (text == canonical)
    assert n.family(n.ip(text)) == (6 if ":" in text else 4)


@pytest.mark.parametrize(
    "text", ["", "1.2.3", "1.2.3.04", "1.2.3.4/8", "::ffff:1.2.3.4", "fe80::1%eth0", "x", "1" * 100, "256.0.0.1"]
)
def test_invalid_ip_addresses_are_refused(text: str) -> None:
    assert not n.is_ip(text)
    assert not n.is_cidr(f"{text}/8")
    with pytest.raises(ValueError, match="IP"):
        n.ip(text)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("0.0.0.0", "unspecified"), ("::", "unspecified"), ("127.1.2.3", "loopback"), ("::1", "loopback"),  # noqa: S104
        ("224.0.0.7", "link_local_multicast"), ("ff02::1", "link_local_multicast"), ("224.0.1.7", ""), ("ff05::1", ""),
        ("169.254.3.4", "link_local_unicast"), ("fe80::1", "link_local_unicast"), ("255.255.255.255", ""),
        ("10.0.0.1", "global_unicast"), ("8.8.8.8", "global_unicast"),
        ("2001:db8::1", "global_unicast"), ("fd00::1", "global_unicast"),
    ],
)  # fmt: skip
def test_ip_addresses_are_classified(text: str, kinds: str) -> None:
    address = n.ip(text)
    found = {
        "unspecified": n.is_unspecified(address),
        "loopback": n.is_loopback(address),
        "link_local_multicast": n.is_link_local_multicast(address),
        "link_local_unicast": n.is_link_local_unicast(address),
        "global_unicast": n.is_global_unicast(address),
    }
    assert [kind for kind, yes in found.items() if yes] == kinds.split()


def test_cidr_functions_return_parts_and_membership() -> None:
    network = n.cidr("10.1.2.3/8")
    assert network == {"cidr": "10.1.2.3/8"}
    assert n.masked(network) == {"cidr": "10.0.0.0/8"}
    assert n.cidr_ip(network) == {"ip": "10.1.2.3"}
    assert n.prefix_length(network) == 8
    assert n.contains_ip(network, "10.255.0.1")
    assert not n.contains_ip(network, n.ip("11.0.0.1"))
    assert not n.contains_ip(network, "::1")
    assert n.contains_cidr(network, "10.0.0.0/8")
    assert n.contains_cidr(network, n.cidr("10.2.0.0/16"))
    assert not n.contains_cidr(network, "0.0.0.0/0")
    assert not n.contains_cidr(network, "::/0")
    assert not n.contains_cidr(network, "11.0.0.0/16")


@pytest.mark.parametrize(
    "text", ["10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1", "::/129", "::/1e1", "::/" + "1" * 9]
)
def test_invalid_networks_are_refused(text: str) -> None:
    assert not n.is_cidr(text)
    with pytest.raises(ValueError, match="expected a network"):
        n.cidr(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "https://user:pw@example.com:8443/a%20b/c?x=1&y=&x=2#f",
            ("https", "example.com:8443", "example.com", "8443", "/a%20b/c"),
        ),
        ("http://[::1]:80/", ("http", "[::1]:80", "::1", "80", "/")),
        ("http://[::1]", ("http", "[::1]", "::1", "", "")),
        ("/path/only", ("", "", "", "", "/path/only")),
        ("HTTP://h", ("http", "h", "h", "", "")),
    ],
)
def test_urls_are_split_into_parts(text: str, parts: tuple[str, ...]) -> None:
    url = n.url(text)
    assert n.is_url(text)
    assert (n.scheme(url), n.host(url), n.hostname(url), n.port(url), n.escaped_path(url)) == parts


def test_url_queries_are_decoded() -> None:
    assert n.query(n.url("https://h/?x=1&y=&x=%202")) == {"x": ["1", " 2"], "y": [""]}
    assert n.query(n.url("https://h/")) == {}


@pytest.mark.parametrize(
    "text", ["", "a.b", "//h/%zz", "https://a b/", "https://h:x/", "http://[::1", "1http://h", "/\x7f", "/" * 9000]
)
def test_invalid_urls_are_refused(text: str) -> None:
    assert not n.is_url(text)
    with pytest.raises(ValueError, match="not a URL"):
        n.url(text)
