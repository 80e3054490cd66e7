"""``wharfinger package …`` as people run it, against a real registry."""

import argparse
import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tests.packages.charts import WEB_SERVICE, WEB_VERSION, chart
from tests.packages.faulty_registry import Reply, open_faulty_registry, sample
from tests.registry_server import PASSWORD, USER, open_registry_server
from wharfinger.packages.address import RegistryAddress
from wharfinger.packages.commands import add_package
from wharfinger.packages.digest import digest_of
from wharfinger.packages.manifest import HELM_CONFIG, MAX_MANIFEST, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry import Descriptor


def run(*arguments: str) -> int:
    """The command line in this thread; its exit code."""
    parser = argparse.ArgumentParser(prog="wharfinger package")
    add_package(parser)
    args = parser.parse_args(arguments)
    code: int = args.handler(args)
    return code


async def run_beside(*arguments: str) -> int:
    return await trio.to_thread.run_sync(lambda: run(*arguments))


@contextmanager
def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(text))
        yield


async def test_push_and_inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with open_registry_server(tmp_path) as address:
        assert await run_beside("push", str(WEB_SERVICE), f"{address}/charts/web-service") == 0
        said = capsys.readouterr().out
        match = re.fullmatch(
            rf"pushed {re.escape(str(address))}/charts/web-service:{re.escape(WEB_VERSION)} (sha256:[0-9a-f]{{64}})\n",
            said,
        )
        assert match is not None
        for reference in (
            f"oci://{address}/charts/web-service:{WEB_VERSION}",
            f"{address}/charts/web-service@{match[1]}",
        ):
            assert await run_beside("inspect", reference) == 0
            said = capsys.readouterr().out
            assert f"digest       {match[1]}" in said
            assert re.search(r"^name +web-service$", said, re.MULTILINE)
            assert re.search(rf"^version +{re.escape(WEB_VERSION)}$", said, re.MULTILINE)
            assert re.search(
                r"^layer +sha256:[0-9a-f]{64}  \d+ bytes  application/vnd\.cncf\.helm\.chart", said, re.MULTILINE
            )


async def test_push_with_a_tag_of_its_own_and_a_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = chart(tmp_path / "web", version="1.0.0+a")
    async with open_registry_server(tmp_path, with_password=True) as address:
        reference = f"{address}/web"
        with typed(PASSWORD + "\n", monkeypatch):
            assert await run_beside("push", str(folder), reference, "--username", USER, "--password-stdin") == 0
        assert f"pushed {reference}:1.0.0_a sha256:" in capsys.readouterr().out
        with typed(PASSWORD, monkeypatch):
            assert (
                await run_beside("push", str(folder), f"{reference}:latest", "--username", USER, "--password-stdin")
                == 0
            )
        assert f"pushed {reference}:latest sha256:" in capsys.readouterr().out
        with typed("wr0ng", monkeypatch):
            assert await run_beside("inspect", f"{reference}:latest", "--username", USER, "--password-stdin") == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "check user name and password" in said
        assert "wr0ng" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["push", str(WEB_SERVICE), "web"], "no repository"),
        (["push", str(WEB_SERVICE), "a.example/Web"], "lower-case"),
        (["push", str(WEB_SERVICE), f"a.example/web@sha256:{'a' * 64}"], "a digest cannot be pushed to"),
        (["push", "/nonexistent", "a.example/web"], "give a chart folder or a .tgz"),
        (["inspect", "127.0.0.1:1/web"], "give a tag or a digest, such as 127.0.0.1:1/web:1.0.0"),
        (["inspect", "127.0.0.1:1/web:1"], "check the address and that the registry runs; this may pass by itself"),
        (["inspect", "a.example/web:1", "--username", "x"], "--username and --password-stdin together"),
        (["inspect", "a.example/web:1", "--password-stdin"], "--username and --password-stdin together"),
        (["inspect", "https://127.0.0.1:1/web:1", "--ca-file", "/nonexistent.pem"], "not a file of PEM certificates"),
    ],
)
def test_one_line_says_what_is_wrong(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert says in said.err


def test_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["push"], ["inspect"], ["pull", "x"]):
        with pytest.raises(SystemExit) as caught:
            run(*arguments)
        assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_plain_http_is_asked_for() -> None:
    parser = argparse.ArgumentParser()
    add_package(parser)
    assert parser.parse_args(["push", "x", "y", "--plain-http"]).plain_http is True
    assert parser.parse_args(["push", "x", "y"]).plain_http is False


async def inspect_config(config: bytes, media_type: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """What inspect says of an artifact with this config."""
    described = Descriptor(media_type, digest_of(config), len(config))
    data = write_manifest(described, (sample().layer,), {})
    async with open_faulty_registry() as faulty:
        faulty.manifest("1", Reply(headers=(("Content-Type", OCI_MANIFEST),), body=data))
        faulty.manifest(digest_of(data).text, Reply(headers=(("Content-Type", OCI_MANIFEST),), body=data))
        faulty.blob(described, Reply(body=config))
        code = await run_beside("inspect", f"{faulty.address}/charts/web:1")
    said = capsys.readouterr()
    return code, said.out, said.err


async def test_what_strangers_wrote_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    config = json.dumps({"name": "web\x1b[31m\nname  other", "version": ["x"], "appVersion": 1.5}).encode()
    code, out, _ = await inspect_config(config, HELM_CONFIG, capsys)
    assert code == 0
    assert "\x1b" not in out
    assert len(re.findall("^name", out, re.MULTILINE)) == 1
    assert re.search(r"^app version +1\.5$", out, re.MULTILINE)


async def test_artifacts_that_are_no_charts_are_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = await inspect_config(b"{}", "application/vnd.oci.image.config.v1+json", capsys)
    assert code == 0
    assert re.search(r"^type +application/vnd\.oci\.image\.config", out, re.MULTILINE)
    assert "name" not in out


@pytest.mark.parametrize("config", [b"[]", b"{", b" " * (MAX_MANIFEST + 1)])
async def test_a_config_that_cannot_be_read(config: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = await inspect_config(config, HELM_CONFIG, capsys)
    assert (code, out) == (1, "")
    assert err.startswith("error: config sha256:")


def test_an_address_prints_as_it_is_typed() -> None:
    assert str(RegistryAddress("127.0.0.1", 5000)) == "127.0.0.1:5000"
