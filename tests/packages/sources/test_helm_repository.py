"""Helm repositories as sources of packages, from real file servers on this machine."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart
from tests.packages.support.registry_contract import read
from tests.packages.support.web_server import Quiet, serving
from wharfinger.packages.charts.chart import pack_chart
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import (
    ArtifactError,
    ArtifactNotFoundError,
    DigestError,
    LoginRefusedError,
    RegistryError,
)
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.sources.helm_repository import (
    MAX_INDEXES,
    ChartEntry,
    HelmRepositories,
    get_archive,
    read_charts,
)
from wharfinger.packages.sources.packed_registry import PackedRegistry
from wharfinger.packages.sources.source import HelmSource, Network, open_source, source_host, source_text
from wharfinger.packages.sources.web_files import WebServer

LOGIN = Credentials("porter", "hush")


@dataclass
class Log:
    """The requests of a server: method, path, status, and the Authorization header."""

    lines: list[tuple[str, int]] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)


def logging_to(log: Log, *, demands_login: bool = False) -> type[Quiet]:
    class Handler(Quiet):
        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            log.logins.append(self.headers.get("Authorization", ""))
            if demands_login and log.logins[-1] != LOGIN.basic():
                self.send_error(404)  # GitLab answers in this way.
                return
            super().do_GET()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            log.lines.append((self.path, int(code)))

    return Handler


def publish(root: Path, *versions: str, base: str = "", digests: bool = True, name: str = "web") -> None:
    """Write a Helm repository: an index, and the archives of all versions."""
    root.mkdir(exist_ok=True)
    lines = ["apiVersion: v1", "entries:", f"  {name}:"]
    for version in versions:
        data = pack_chart(chart(root.parent / f"chart-{version}", "web", version))
        (root / f"web-{version}.tgz").write_bytes(data)
        digest = f"digest: {digest_of(data).hex}, " if digests else ""
        lines.append(f"  - {{name: web, version: {version}, {digest}urls: ['{base}web-{version}.tgz']}}")
    (root / "index.yaml").write_text("\n".join(lines) + "\n")


async def test_a_chart_has_the_digest_under_which_it_would_be_pushed(tmp_path: Path) -> None:
    publish(tmp_path / "charts", "1.0.0", "1.1.0+b1")
    layout = OciLayout(tmp_path / "layout")
    package = await load_package(tmp_path / "charts" / "web-1.1.0+b1.tgz")
    pushed = await push_package(package, layout, "web", package.tag)
    with serving(tmp_path) as url:
        source = HelmSource(f"{url}/charts")
        async with open_source(source, "web") as (registry, path):
            assert await registry.tags(path) == ("1.0.0", "1.1.0_b1")
            assert await registry.resolve(path, "1.1.0_b1") == pushed
            manifest = await registry.manifest(path, pushed.digest)
            assert manifest == await layout.manifest("web", pushed.digest)
            for blob in (manifest.config, *manifest.layers):
                assert digest_of(await read(registry, blob, path)) == blob.digest
        assert source_text(source) == f"helm:{url}/charts"
        assert source_host(source) == url.removeprefix("http://")


async def test_a_version_that_cannot_be_a_tag_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "index.yaml").write_text(
        "entries: {web: [{version: 1.0.0, urls: [a.tgz]}, {version: 1.0.0 beta, urls: [b.tgz]}]}"
    )
    with serving(tmp_path) as url:
        async with open_source(HelmSource(url), "web") as (registry, path):
            assert await registry.tags(path) == ("1.0.0",)


async def test_an_unchanged_index_is_not_downloaded_again(tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    publish(tmp_path / "charts", "1.0.0")
    log, network = Log(), Network()
    with serving(tmp_path / "charts", logging_to(log)) as url:

        async def tags() -> tuple[str, ...]:
            async with open_source(HelmSource(url), "web", network=network) as (registry, path):
                return await registry.tags(path)

        await tags()
        await tags()
        assert log.lines == [("/index.yaml", 200)]
        mock_clock.jump(11)
        assert await tags() == ("1.0.0",)
        assert log.lines[1:] == [("/index.yaml", 304)]
        publish(tmp_path / "charts", "1.0.0", "1.1.0")
        os.utime(tmp_path / "charts" / "index.yaml", (2e9, 2e9))
        mock_clock.jump(11)
        assert await tags() == ("1.0.0", "1.1.0")


@pytest.mark.slow
async def test_a_login_is_sent_only_to_the_server_of_the_repository(tmp_path: Path) -> None:
    """The index has absolute URLs on another server, which must not get the login."""
    own, other = Log(), Log()
    (tmp_path / "files").mkdir()
    with (
        serving(tmp_path / "files", logging_to(other)) as elsewhere,
        serving(tmp_path / "charts", logging_to(own, demands_login=True)) as url,
    ):
        publish(tmp_path / "charts", "1.0.0", base=f"{elsewhere}/")
        (tmp_path / "charts" / "web-1.0.0.tgz").rename(tmp_path / "files" / "web-1.0.0.tgz")
        async with open_source(HelmSource(url, LOGIN), "web") as (registry, path):
            assert (await registry.resolve(path, "1.0.0")).size
        assert (own.logins, other.logins) == ([LOGIN.basic()], [""])
        async with open_source(HelmSource(url), "web") as (registry, path):
            with pytest.raises(ArtifactNotFoundError, match=r"index\.yaml: not found \(404\)"):
                await registry.resolve(path, "1.0.0")


async def test_missing_versions_and_changed_archives_are_reported(tmp_path: Path) -> None:
    publish(tmp_path / "charts", "1.0.0", "1.1.0")
    with serving(tmp_path / "charts") as url:
        async with open_source(HelmSource(url), "web") as (registry, path):
            with pytest.raises(ArtifactNotFoundError) as caught:
                await registry.resolve(path, "2.0.0")
            assert str(caught.value) == (
                f"{url}: has no version 2.0.0 of web; it has: 1.0.0, 1.1.0; correct the version, or publish it"
            )
            (tmp_path / "charts" / "web-1.0.0.tgz").write_bytes((tmp_path / "charts" / "web-1.1.0.tgz").read_bytes())
            with pytest.raises(
                DigestError, match=r"web-1\.0\.0\.tgz: expected the digest .* of the index, found"
            ) as failed:
                await registry.resolve(path, "1.0.0")
            assert failed.value.transient
        async with open_source(HelmSource(url), "shop") as (registry, path):
            with pytest.raises(ArtifactNotFoundError, match="the repository has no chart shop; correct the name"):
                await registry.tags(path)


async def test_an_archive_of_another_version_is_refused(tmp_path: Path) -> None:
    publish(tmp_path / "charts", "1.0.0", "1.1.0", digests=False)
    (tmp_path / "charts" / "web-1.0.0.tgz").write_bytes((tmp_path / "charts" / "web-1.1.0.tgz").read_bytes())
    with serving(tmp_path / "charts") as url:
        async with open_source(HelmSource(url), "web") as (registry, path):
            with pytest.raises(
                ArtifactError, match=r"expected the chart web 1\.0\.0, as the index says, found web 1\.1\.0"
            ):
                await registry.resolve(path, "1.0.0")


async def test_a_server_that_is_not_a_helm_repository_is_reported(tmp_path: Path) -> None:
    (tmp_path / "index.yaml").write_text("- a\n- [")
    with serving(tmp_path) as url:
        async with open_source(HelmSource(url), "web") as (registry, path):
            with pytest.raises(RegistryError, match="is this a Helm repository"):
                await registry.tags(path)


async def test_a_repository_can_be_checked_without_a_package(tmp_path: Path) -> None:
    publish(tmp_path / "charts", "1.0.0")
    with serving(tmp_path) as url:
        for place, good in ((f"{url}/charts", True), (f"{url}/none", False)):
            async with open_source(HelmSource(place), "any") as (registry, _):
                assert isinstance(registry, PackedRegistry)
                if good:
                    await registry.check()
                else:
                    with pytest.raises(ArtifactNotFoundError):
                        await registry.check()


async def test_an_index_read_with_a_login_is_not_shared(tmp_path: Path) -> None:
    publish(tmp_path / "charts", "1.0.0")
    network = Network()
    with serving(tmp_path / "charts", logging_to(Log(), demands_login=True)) as url:
        async with open_source(HelmSource(url, LOGIN), "web", network=network) as (registry, path):
            assert await registry.tags(path) == ("1.0.0",)
        async with open_source(HelmSource(url), "web", network=network) as (registry, path):
            with pytest.raises(ArtifactNotFoundError):
                await registry.tags(path)


async def test_an_archive_over_plain_http_needs_a_digest() -> None:
    server, entry = WebServer("https://charts.example"), ChartEntry("1.0.0", "http://files.example/web.tgz", "")
    with pytest.raises(RegistryError, match="an archive over plain http without its digest; refused"):
        await get_archive(server, entry)


async def test_the_number_of_indexes_in_memory_is_bounded(tmp_path: Path) -> None:
    repositories = HelmRepositories()
    with serving(tmp_path) as url:
        for number in range(MAX_INDEXES + 3):
            publish(tmp_path / str(number), "1.0.0")
            await repositories.charts(WebServer(f"{url}/{number}"))
    assert len(repositories._indexes) == MAX_INDEXES


def test_entries_that_cannot_be_fetched_are_left_out() -> None:
    index = b"""
entries:
  web:
  - {version: 1.0.0, urls: [a.tgz], digest: 'sha256:AB'}
  - {version: 1.0.0, urls: [second.tgz]}
  - {version: 2.0.0, urls: []}
  - {version: 3.0.0, urls: 7}
  - {urls: [b.tgz]}
  - nonsense
  - {version: 4.0.0, urls: ['http://[x/y.tgz']}
  other: {}
"""
    found = read_charts(index, "https://charts.example/stable/")
    assert found == {"web": {"1.0.0": ChartEntry("1.0.0", "https://charts.example/stable/a.tgz", "ab")}}


async def test_a_refused_login_is_reported(tmp_path: Path) -> None:
    class Refusing(Quiet):
        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            self.send_error(401)

    with serving(tmp_path, Refusing) as url:
        async with open_source(HelmSource(url, LOGIN), "web") as (registry, path):
            with pytest.raises(LoginRefusedError, match=r"index\.yaml: authentication failed \(401\)"):
                await registry.tags(path)
