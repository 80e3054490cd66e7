"""Tokens that the kubelet projects into a file. The file is read for each connection, and again when a token is refused."""

from pathlib import Path

import pytest

from tests.packages.support.faulty_registry import Reply, Request, open_faulty_registry, sample
from wharfinger.packages.errors import LoginRefusedError, RegistryError
from wharfinger.packages.registry.address import RepositoryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.sources.source import RegistrySource, open_source
from wharfinger.packages.sources.token_file import MAX_TOKEN, TokenFile, read_token_file


async def test_a_token_is_a_password_or_an_identity_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc.def\n")
    assert await read_token_file(TokenFile(file, "robot")) == Credentials("robot", "abc.def")
    assert await read_token_file(TokenFile(file), ("auth.example",)) == Credentials(
        "", "", "abc.def", ("auth.example",)
    )


@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", b"\xff", b"x" * (MAX_TOKEN + 1)])
async def test_files_without_exactly_one_token_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(RegistryError) as caught:
        await read_token_file(TokenFile(tmp_path / "token"))
    assert str(caught.value) == f"{tmp_path}/token: expected a file with one token; check the program that writes it"
    assert caught.value.transient


async def test_a_missing_token_file_is_a_transient_error(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="the token file cannot be read: No such file") as caught:
        await read_token_file(TokenFile(tmp_path / "token"))
    assert caught.value.transient


async def test_a_rotated_token_is_read_again(tmp_path: Path) -> None:
    """The token changes while a package is being read, so the refused request is sent once more with the new token."""
    file, artifact = tmp_path / "token", sample()
    file.write_text("first")
    async with open_faulty_registry() as faulty:
        valid = ["first"]

        def answer(request: Request) -> Reply:
            if request.headers.get("authorization") != Credentials("robot", valid[0]).basic():
                return Reply(401, (("WWW-Authenticate", "Basic"),))
            return Reply(body=artifact.manifest_bytes)

        faulty.answer = answer
        source = RegistrySource(RepositoryAddress(faulty.address, "charts", "http"), token=TokenFile(file, "robot"))
        async with open_source(source, "web") as (registry, path):
            assert (await registry.resolve(path, "1.0.0")).digest == artifact.manifest.digest
            valid[0] = "second"
            file.write_text("second")
            assert (await registry.resolve(path, "1.0.0")).digest == artifact.manifest.digest
            valid[0] = "third"
            with pytest.raises(LoginRefusedError):
                await registry.resolve(path, "1.0.0")
