"""The targets of commands, and the login for them."""

import argparse
from pathlib import Path

import pytest

from tests.packages.support.connect_proxy import open_connect_proxy
from tests.packages.support.registry_contract import push
from tests.registry_server import open_registry_server
from wharfinger.packages.errors import AddressError
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.targets import add_registry_arguments, open_target, read_target


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_registry_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    "text", ["r.example/charts/web:1.0.0", "oci-layout:packages/web:1.0.0", f"r.example/web@sha256:{'0' * 64}"]
)
def test_a_target_prints_as_it_is_typed(text: str) -> None:
    assert str(read_target(text, plain_http=False)) == text


@pytest.mark.parametrize("text", ["oci-layout:", "oci-layout:a/B", "web", "r.example/web:!"])
def test_targets_that_are_none(text: str) -> None:
    with pytest.raises(AddressError):
        read_target(text, plain_http=False)


async def test_a_command_uses_the_proxy_of_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_registry_server(tmp_path) as address, open_connect_proxy() as proxy:
        async with open_registry(address, scheme="http") as registry:
            pushed = await push(registry, "1.0.0")
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        target = read_target(f"registry.test:{address.port}/charts/web:1.0.0", plain_http=True)
        (tmp_path / "config.json").write_text("{}")
        async with open_target(options("--docker-config", str(tmp_path / "config.json")), target) as opened:
            assert await opened.resolve(target.repository, target.tag) == pushed
        assert proxy.requests == [f"GET http://registry.test:{address.port}/v2/charts/web/manifests/1.0.0"]
