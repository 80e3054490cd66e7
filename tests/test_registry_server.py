from pathlib import Path

import httpx
import pytest

from tests.registry_server import PASSWORD, USER, open_registry_server


async def test_it_is_a_registry_and_is_gone_afterwards(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://{address}/v2/")
        assert answer.status_code == 200
        assert answer.headers["docker-distribution-api-version"] == "registry/2.0"
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{address}/v2/")


async def test_two_of_them_do_not_meet_and_one_wants_a_password(tmp_path: Path) -> None:
    async with (
        open_registry_server(tmp_path / "a") as one,
        open_registry_server(tmp_path / "b", with_password=True) as other,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        assert one != other
        assert (await client.get(f"http://{other}/v2/")).status_code == 401
        assert (await client.get(f"http://{other}/v2/", auth=(USER, PASSWORD))).status_code == 200


async def test_a_registry_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("a file where its folder should be")
    with pytest.raises(FileExistsError):
        async with open_registry_server(tmp_path):
            raise AssertionError("must not start")


async def test_a_machine_without_the_program_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="docker-registry is not installed"):
        async with open_registry_server(tmp_path):
            raise AssertionError("must not start")
