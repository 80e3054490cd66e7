"""Helm repositories as sources of a tree, over HTTP from a real server on this machine."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.packages.support.web_server import Quiet, serving
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.sources.fetcher import OfflineError, SourceError
from wharfinger.offline.sources.helm_repository import HelmRepositories
from wharfinger.packages.charts.chart import pack_chart
from wharfinger.packages.digest import digest_of
from wharfinger.packages.registry.docker_logins import DockerLogins
from wharfinger.packages.sources.source import Network


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, JsonObject]]:
    """Serve a folder with the charts web 1.0.0 and 1.1.0, and yield the folder and its HelmRepository."""
    root = tmp_path / "served"
    root.mkdir()
    lines = ["apiVersion: v1", "entries:", "  web:"]
    for version in ("1.0.0", "1.1.0"):
        data = pack_chart(chart(tmp_path / version, "web", version))
        (root / f"web-{version}.tgz").write_bytes(data)
        digest = digest_of(data).hex
        lines.append(f"  - {{name: web, version: {version}, digest: {digest}, urls: [web-{version}.tgz]}}")
    (root / "index.yaml").write_text("\n".join(lines) + "\n")
    with serving(root) as url:
        yield root, {"spec": {"url": url}}


async def test_the_newest_chart_is_unpacked(served: tuple[Path, JsonObject], tmp_path: Path) -> None:
    _, repository = served
    artifact = await HelmRepositories(tmp_path / "cache").chart(repository, "web", "1.x", None)
    assert "version: 1.1.0" in (artifact.folder / "Chart.yaml").read_text()
    assert artifact.revision.startswith("sha256:")


async def test_a_cached_chart_is_not_fetched_again(served: tuple[Path, JsonObject], tmp_path: Path) -> None:
    root, repository = served
    first = await HelmRepositories(tmp_path / "cache").chart(repository, "web", "1.0.0", None)
    (root / "web-1.0.0.tgz").unlink()
    assert await HelmRepositories(tmp_path / "cache").chart(repository, "web", "1.0.0", None) == first


async def test_a_changed_archive_is_refused(served: tuple[Path, JsonObject], tmp_path: Path) -> None:
    root, repository = served
    (root / "web-1.0.0.tgz").write_bytes((root / "web-1.1.0.tgz").read_bytes())
    with pytest.raises(SourceError, match="of the index, found") as error:
        await HelmRepositories(tmp_path / "cache").chart(repository, "web", "1.0.0", None)
    assert error.value.transient


async def test_missing_charts_are_reported(served: tuple[Path, JsonObject], tmp_path: Path) -> None:
    root, repository = served
    repositories = HelmRepositories(tmp_path / "cache")
    with pytest.raises(SourceError, match="has no chart 'wbe'"):
        await repositories.chart(repository, "wbe", "", None)
    with pytest.raises(SourceError, match=r"no version of web satisfies '>=9'; it has: 1.0.0, 1.1.0"):
        await repositories.chart(repository, "web", ">=9", None)
    (root / "web-1.0.0.tgz").unlink()
    with pytest.raises(SourceError, match=r"not found \(404\)"):
        await repositories.chart(repository, "web", "1.0.0", None)


async def test_network_errors_are_transient_and_offline_mode_is_enforced(tmp_path: Path) -> None:
    nowhere: JsonObject = {"spec": {"url": "http://127.0.0.1:9"}}
    with pytest.raises(SourceError) as error:
        await HelmRepositories(tmp_path).chart(nowhere, "web", "", None)
    assert error.value.transient
    far: JsonObject = {"spec": {"url": "https://charts.example.com"}}
    with pytest.raises(OfflineError):
        await HelmRepositories(tmp_path, network=False).chart(far, "web", "", None)


class WithPassword(Quiet):
    """A handler that accepts the login of one user."""

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(b"porter:hush").decode():
            self.send_error(401)
            return
        super().do_GET()


@pytest.mark.slow
async def test_a_login_comes_from_a_secret_or_docker_configuration(
    served: tuple[Path, JsonObject], tmp_path: Path
) -> None:
    root, _ = served
    with serving(root, WithPassword) as url:
        repository: JsonObject = {"spec": {"url": url}}
        host = url.removeprefix("http://")
        auth = base64.b64encode(b"porter:hush").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))
        logins = Network(logins=DockerLogins(tmp_path / "config.json"))
        with pytest.raises(SourceError, match=r"authentication failed \(401\)"):
            await HelmRepositories(tmp_path / "one").chart(repository, "web", "", None)
        repositories = HelmRepositories(tmp_path / "two", network=False, sources=logins)
        artifact = await repositories.chart(repository, "web", "", None)
        assert "version: 1.1.0" in (artifact.folder / "Chart.yaml").read_text()
        with pytest.raises(SourceError, match=r"authentication failed \(401\)"):
            await HelmRepositories(tmp_path / "three", sources=logins).chart(repository, "web", "", ("nobody", "wrong"))
        (tmp_path / "config.json").write_text("[]")
        with pytest.raises(SourceError, match=r"config\.json: docker config: document"):
            await HelmRepositories(tmp_path / "four", sources=logins).chart(repository, "web", "", None)
