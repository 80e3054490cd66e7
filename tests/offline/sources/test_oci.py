"""OCI artifacts as sources of a tree, from a real registry on this machine."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.registry_server import PASSWORD, USER, open_registry_server
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.sources.fetcher import OfflineError, SourceError, SourceRequest
from wharfinger.offline.sources.oci import OciFetcher
from wharfinger.offline.store.kinds import OCI_REPOSITORY
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_logins import DockerLogins
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.sources.source import Network
from wharfinger.packages.store.disk_store import open_store
from wharfinger.runtime.fixpoint.model import Id


@asynccontextmanager
async def registry(folder: Path) -> AsyncIterator[tuple[str, OciFetcher]]:
    """Run a registry that has the chart web in two versions. Yield its address and a fetcher."""
    async with open_registry_server(folder) as address, open_store(folder / "store") as store:
        async with open_registry(address, scheme="http") as opened:
            for version in ("1.0.0", "1.1.0"):
                package = await load_package(chart(folder / version, "web", version), "web")
                await push_package(package, opened, "charts/web", version)
        yield str(address), OciFetcher(store, network=False)


def repository(url: str, **ref: str) -> SourceRequest:
    spec: JsonObject = {"url": url, "insecure": True, "ref": {**ref}}
    return SourceRequest(Id(OCI_REPOSITORY, "a", "web"), {"spec": spec})


async def test_artifacts_are_found_by_tag_constraint_and_digest(tmp_path: Path) -> None:
    async with registry(tmp_path) as (address, fetcher):
        url = f"oci://{address}/charts/web"
        one = await fetcher.fetch(repository(url, tag="1.0.0"))
        newest = await fetcher.fetch(repository(url, semver="1.x"))
        assert "version: 1.0.0" in (one.folder / "Chart.yaml").read_text()
        assert "version: 1.1.0" in (newest.folder / "Chart.yaml").read_text()
        assert await fetcher.fetch(repository(url, digest=one.revision)) == one


async def test_charts_of_an_oci_helm_repository_are_fetched(tmp_path: Path) -> None:
    async with registry(tmp_path) as (address, fetcher):
        spec: JsonObject = {"spec": {"url": f"oci://{address}/charts", "insecure": True}}
        artifact = await fetcher.chart(spec, "web", "~1.0", None)
        assert "version: 1.0.0" in (artifact.folder / "Chart.yaml").read_text()


async def test_missing_artifacts_are_reported(tmp_path: Path) -> None:
    async with registry(tmp_path) as (address, fetcher):
        with pytest.raises(SourceError, match=r"no version satisfies '>=9'; it has: 1.0.0, 1.1.0"):
            await fetcher.fetch(repository(f"oci://{address}/charts/web", semver=">=9"))
        with pytest.raises(SourceError):
            await fetcher.fetch(repository(f"oci://{address}/charts/absent", tag="1.0.0"))
        with pytest.raises(SourceError):
            await fetcher.fetch(repository("oci://", tag="1.0.0"))
        with pytest.raises(OfflineError):
            await fetcher.fetch(repository("oci://registry.example.com/charts/web", tag="1.0.0"))


async def test_a_login_from_a_secret_wins_over_a_credential_helper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "docker-credential-own"
    program.parent.mkdir()
    answer = f'{{"Username": "{USER}", "Secret": "{PASSWORD}"}}'
    program.write_text(f"#!/bin/sh\ncat >/dev/null; echo '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    async with open_registry_server(tmp_path, with_password=True) as address, open_store(tmp_path / "store") as store:
        async with open_registry(address, scheme="http", credentials=Credentials(USER, PASSWORD)) as opened:
            package = await load_package(chart(tmp_path / "web", "web", "1.0.0"), "web")
            await push_package(package, opened, "charts/web", "1.0.0")
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"credHelpers": {str(address): "own"}}))
        wanted = repository(f"oci://{address}/charts/web", tag="1.0.0")
        with pytest.raises(SourceError, match="user name and password"):
            await OciFetcher(store, network=False).fetch(wanted)
        fetcher = OciFetcher(store, network=False, sources=Network(logins=DockerLogins(config)))
        artifact = await fetcher.fetch(wanted)
        assert "version: 1.0.0" in (artifact.folder / "Chart.yaml").read_text()
        auth = base64.b64encode(b"nobody:wrong").decode()
        secret = {".dockerconfigjson": json.dumps({"auths": {str(address): {"auth": auth}}}).encode()}
        with pytest.raises(SourceError, match="user name and password"):
            await fetcher.fetch(SourceRequest(wanted.id, wanted.object, secret))
