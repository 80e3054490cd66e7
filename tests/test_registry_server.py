from pathlib import Path

import httpx
import pytest

from tests.registry_server import PASSWORD, USER, open_registry_server


async def test_the_registry_serves_until_its_context_ends(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://{address}/v2/")
        assert answer.status_code == 200
        assert answer.headers["docker-distribution-api-version"] == "registry/2.0"
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{address}/v2/")


async def test_two_registries_are_independent_and_one_demands_a_password(tmp_path: Path) -> None:
    async with (
        open_registry_server(tmp_path / "a") as one,
        open_registry_server(tmp_path / "b", with_password=True) as other,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        assert one != other
        assert (await client.get(f"http://{other}/v2/")).status_code == 401
        assert (await client.get(f"http://{other}/v2/", auth=(USER, PASSWORD))).status_code == 200


async def test_a_failed_start_of_the_registry_is_reported(tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("a file where its folder should be")
    with pytest.raises(FileExistsError):
        async with open_registry_server(tmp_path):
            raise AssertionError("must not start")


async def test_a_missing_registry_program_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="docker-registry is not installed"):
        async with open_registry_server(tmp_path):
            raise AssertionError("must not start")
