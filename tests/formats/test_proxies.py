"""The proxies in environment variables, read as Go programs read them."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.proxies import NO_PROXIES, ProxyAddressError, read_proxies

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("", "https://registry.example", False),
        ("*", "https://registry.example", True),
        ("registry.example", "https://registry.example", True),
        ("registry.example", "https://eu.registry.example", True),
        ("registry.example", "https://myregistry.example", False),
        (".example", "https://registry.example", True),
        (".registry.example", "https://registry.example", False),
        ("*.example", "https://registry.example", True),
        ("REGISTRY.example", "https://registry.example", True),
        ("a.example, registry.example", "https://registry.example", True),
        ("a.example registry.example", "https://registry.example", True),
        ("registry.example:443", "https://registry.example", True),
        ("registry.example:5000", "https://registry.example", False),
        ("registry.example:5000", "https://registry.example:5000", True),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.0.0.0/8", "https://registry.example", False),
        ("10.1.2.3", "https://10.1.2.3:5000", True),
        ("10.1.2.3:443", "https://10.1.2.3:5000", False),
        ("fd00::/8", "https://[fd00::1]:5000", True),
        ("fd00::1", "https://[fd00::1]:5000", True),
        ("[fd00::1]:443", "https://[fd00::1]:5000", False),
        ("", "https://localhost:5000", True),
        ("", "https://127.0.0.1:5000", True),
        ("", "https://[::1]", True),
    ],
)
def test_hosts_in_no_proxy_are_reached_directly(no_proxy: str, url: str, direct: bool) -> None:
    proxies = read_proxies({"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert proxies.of(httpx.URL(url)) == (None if direct else httpx.URL(PROXY))


def test_each_scheme_has_its_own_proxy() -> None:
    proxies = read_proxies(
        {"https_proxy": "secure.example:1", "HTTP_PROXY": "http://plain.example:2", "http_proxy": "x"}
    )
    assert proxies.of(httpx.URL("https://a.example")) == httpx.URL("http://secure.example:1")
    assert proxies.of(httpx.URL("http://a.example")) == httpx.URL("http://plain.example:2")
    assert read_proxies({}) == NO_PROXIES


@pytest.mark.parametrize(
    "text", ["socks5://proxy.example", "http://", "http://a:s3cret@", "http://[", "ftp://a:s3cret@b"]
)
def test_an_invalid_proxy_is_reported_without_its_credentials(text: str) -> None:
    with pytest.raises(ProxyAddressError) as caught:
        read_proxies({"HTTPS_PROXY": text})
    assert str(caught.value) == (
        "HTTPS_PROXY: expected the address of an HTTP proxy, such as http://proxy.example:3128; "
        "correct this environment variable"
    )


def test_proxy_credentials_are_not_shown() -> None:
    assert "s3cret" not in repr(read_proxies({"HTTPS_PROXY": "http://porter:s3cret@proxy.example:1"}))


@given(st.text(max_size=30))
def test_any_no_proxy_entry_is_accepted(text: str) -> None:
    proxies = read_proxies({"HTTPS_PROXY": PROXY, "NO_PROXY": text})
    assert proxies.of(httpx.URL("https://registry.example:5000")) in {None, httpx.URL(PROXY)}
