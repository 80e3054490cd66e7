"""The targets that commands take, and the login for each."""

import argparse
import io
import sys
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart
from tests.packages.support.connect_proxy import open_connect_proxy
from tests.packages.support.registry_contract import push
from tests.packages.support.token_realm import open_token_registry
from tests.registry_server import PASSWORD, USER, open_registry_server
from wharfinger.__main__ import main
from wharfinger.packages.errors import AddressError
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.targets import add_registry_arguments, open_target, read_target


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_registry_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    "text", ["r.example/charts/web:1.0.0", "oci-layout:packages/web:1.0.0", f"r.example/web@sha256:{'0' * 64}"]
)
def test_a_target_is_printed_as_typed(text: str) -> None:
    assert str(read_target(text, plain_http=False)) == text


@pytest.mark.parametrize("text", ["oci-layout:", "oci-layout:a/B", "web", "r.example/web:!"])
def test_invalid_targets_are_refused(text: str) -> None:
    with pytest.raises(AddressError):
        read_target(text, plain_http=False)


async def test_a_login_is_sent_to_another_realm_only_if_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The registry is at localhost, and its realm is at 127.0.0.1, which is another host."""
    folder = chart(tmp_path / "web", "web", "1.0.0")

    async def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD))
        login = ("--username", USER, "--password-stdin")
        return await trio.to_thread.run_sync(lambda: main(["package", *arguments, *login]))

    async with open_token_registry(tmp_path, Credentials(USER, PASSWORD)) as there:
        reference = f"localhost:{there.address.port}/charts/web:1.0.0"
        assert await run("push", str(folder), reference) == 1
        assert "the login to be sent to another host, 127.0.0.1, so the login was not sent" in capsys.readouterr().err
        assert there.realm.requests == []
        assert await run("push", str(folder), reference, "--token-realm", "127.0.0.1") == 0
        assert await run("inspect", reference, "--token-realm", "elsewhere.example", "--token-realm", "127.0.0.1") == 0
        assert await run("inspect", reference, "--token-realm", "elsewhere.example") == 1


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
