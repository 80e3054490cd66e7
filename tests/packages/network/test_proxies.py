"""The proxies for registries that the environment names."""

import pytest

from wharfinger.formats.proxies import NO_PROXIES
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.network.proxies import read_proxies


def test_proxies_are_read_from_the_environment() -> None:
    assert read_proxies({}) == NO_PROXIES
    assert str(read_proxies({"HTTPS_PROXY": "http://proxy.example:3128"}).https) == "http://proxy.example:3128"


def test_an_invalid_proxy_is_a_permanent_error() -> None:
    with pytest.raises(RegistryError, match="HTTPS_PROXY: expected the address of an HTTP proxy") as caught:
        read_proxies({"HTTPS_PROXY": "gopher://proxy"})
    assert not caught.value.transient
