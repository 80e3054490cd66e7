"""Files over HTTP: their URLs, and the only server that gets the login."""

from pathlib import Path

import pytest

from tests.packages.support.connect_proxy import open_connect_proxy
from tests.packages.support.web_server import serving
from wharfinger.packages.errors import AddressError, RegistryError
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.sources.web_files import WebPlace, WebServer, get_file, is_same_server, read_url


def test_urls_are_parsed() -> None:
    assert read_url("https://a.example") == WebPlace(RegistryAddress("a.example"), "https", "/")
    assert read_url("http://a.example:80/b/c?d=e") == WebPlace(RegistryAddress("a.example", 80), "http", "/b/c?d=e")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.example",
        "ftp://a.example",
        "https://",
        "https://[a",
        "https://a b/",
        "https://u:p@a.example/",
        "http://a\n",
    ],
)
def test_invalid_urls_are_refused_without_printing_passwords(url: str) -> None:
    with pytest.raises(AddressError) as caught:
        read_url(url)
    assert "u:p" not in str(caught.value)


def test_servers_are_compared_by_scheme_host_and_port() -> None:
    assert is_same_server("https://a.example/b", "https://a.example/c?d")
    for other in ("http://a.example/b", "https://b.example/b", "https://a.example:444/b"):
        assert not is_same_server("https://a.example/b", other)


async def test_a_file_is_downloaded_through_a_proxy(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with serving(tmp_path) as url:
        port = url.rpartition(":")[2]
        async with open_connect_proxy() as proxy:
            named = f"http://files.test:{port}"
            server = WebServer(named, proxies=read_proxies({"HTTP_PROXY": proxy.url()}))
            assert (await get_file(server, f"{named}/file?x=1", max_bytes=10)).body == b"content"
            assert proxy.requests == [f"GET {named}/file?x=1"]


async def test_oversized_and_missing_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with serving(tmp_path) as url:
        with pytest.raises(RegistryError, match=rf"{url}/file: the answer has more than 3 bytes"):
            await get_file(WebServer(url), f"{url}/file?sig=secret", max_bytes=3)
        with pytest.raises(RegistryError, match=rf"{url}/none: not found \(404\)") as caught:
            await get_file(WebServer(url), f"{url}/none?sig=secret", max_bytes=3)
        assert "secret" not in str(caught.value)


async def test_an_invalid_certificate_authority_is_refused() -> None:
    with pytest.raises(RegistryError, match="expected PEM text with certificates"):
        await get_file(WebServer("https://a.example", ca="hello"), "https://a.example/x", max_bytes=1)
