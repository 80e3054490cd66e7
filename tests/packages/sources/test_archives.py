"""Archives as sources of packages, from a real file server and from memory."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, manifest
from tests.packages.support.web_server import Quiet, serving
from wharfinger.packages.charts.chart import pack_chart
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError, RegistryError
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.pusher import load_package
from wharfinger.packages.sources.archives import ArchiveFile, ArchiveSource, pack_files
from wharfinger.packages.sources.source import open_source, source_host, source_text


def packed(files: dict[str, str], links: dict[str, str] | None = None) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return made.getvalue()


def source_of(data: bytes, url: str = "", *, name: str = "web", version: str = "1.0.0") -> ArchiveSource:
    return ArchiveSource((ArchiveFile(name, version, digest_of(data), url, b"" if url else data),))


@pytest.mark.parametrize("top", ["", "web-1.0.0/"])
async def test_an_archive_from_a_url_has_the_digest_of_its_folder(tmp_path: Path, top: str) -> None:
    data = packed({f"{top}a.yaml": manifest("a"), f"{top}more/b.yaml": manifest("b")})
    (tmp_path / "web.tar.gz").write_bytes(data)
    with serving(tmp_path) as url:
        async with open_source(source_of(data, f"{url}/web.tar.gz"), "web") as (registry, path):
            assert await registry.tags(path) == ("1.0.0",)
            found = await registry.resolve(path, "1.0.0")
            assert (
                found
                == pack_files(
                    packed({"a.yaml": manifest("a"), "more/b.yaml": manifest("b")}), "web", "1.0.0", ""
                ).manifest.descriptor
            )
            with pytest.raises(
                ArtifactNotFoundError, match=r"has no version 2.0.0 of web; it has: 1.0.0; correct the version"
            ):
                await registry.resolve(path, "2.0.0")
        async with open_source(source_of(data, f"{url}/web.tar.gz"), "dns") as (registry, path):
            with pytest.raises(ArtifactNotFoundError, match=r"has no package dns"):
                await registry.tags(path)


async def test_an_inline_chart_has_the_digest_of_its_folder(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    async with open_source(source_of(pack_chart(folder)), "web") as (registry, path):
        assert await registry.resolve(path, "1.0.0") == (await load_package(folder, "web")).manifest.descriptor


async def test_bytes_with_another_digest_are_never_unpacked(tmp_path: Path) -> None:
    (tmp_path / "web.tgz").write_bytes(b"not an archive at all")
    with serving(tmp_path) as url:
        source = ArchiveSource((ArchiveFile("web", "1.0.0", Digest(f"sha256:{'1' * 64}"), f"{url}/web.tgz"),))
        async with open_source(source, "web") as (registry, path):
            told = hashlib.sha256(b"not an archive at all").hexdigest()
            with pytest.raises(
                DigestError, match=rf"web.tgz: expected the digest .* of spec.archive.packages, found sha256:{told}"
            ) as caught:
                await registry.resolve(path, "1.0.0")
            assert caught.value.transient
        missing = ArchiveSource((ArchiveFile("web", "1.0.0", Digest(f"sha256:{'1' * 64}"), f"{url}/absent.tgz"),))
        async with open_source(missing, "web") as (registry, path):
            with pytest.raises(RegistryError, match=r"404"):
                await registry.resolve(path, "1.0.0")


BOMB = gzip.compress(b"\0" * (1024 * 1024), 9) * 300
"""300 MiB of zeros in 300 members, because compressing one member of that size would take a second."""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no archive", "web: "),
        (packed({"../a.yaml": "x"}), r"'\.\./a.yaml' leads out of the tree"),
        (packed({"/etc/a.yaml": "x"}), "is absolute"),
        (packed({"a.yaml": manifest("a")}, {"b.yaml": "/etc/passwd"}), "symbolic link to the absolute path"),
        (packed({"a.yaml": manifest("a")}, {"b.yaml": "../../x"}), "symbolic link out of the tree"),
        (packed({"README": "x"}), "web: package 'web': expected package.yaml"),
        (packed({}), "expected package.yaml"),
        (BOMB, "web: "),
    ],
    ids=["noise", "climbing", "absolute", "absolute link", "climbing link", "no package", "empty", "bomb"],
)
async def test_hostile_archives_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(ArtifactError, match=why):
        pack_files(data, "web", "1.0.0", "web")


def test_archive_sources_have_a_host_and_a_distinct_text() -> None:
    one, other = source_of(b"a", "https://files.example/a.tgz"), source_of(b"b", "https://files.example/a.tgz")
    assert (source_host(one), source_host(source_of(b"a"))) == ("files.example", "")
    assert source_text(one) != source_text(other)


@pytest.mark.slow
async def test_a_login_is_sent_only_to_the_named_server(tmp_path: Path) -> None:
    data = packed({"a.yaml": manifest("a")})
    (tmp_path / "web.tgz").write_bytes(data)
    logins: list[str] = []

    class Handler(Quiet):
        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            logins.append(self.headers.get("Authorization", ""))
            super().do_GET()

    login = Credentials("porter", "hush")
    with serving(tmp_path, Handler) as own, serving(tmp_path, Handler) as other:
        for url in (own, other):
            source = replace(source_of(data, f"{url}/web.tgz"), server=own, credentials=login)
            async with open_source(source, "web") as (registry, path):
                await registry.resolve(path, "1.0.0")
    assert logins == [login.basic(), ""]
