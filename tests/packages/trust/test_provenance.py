"""Provenance files of charts, in registries and in Helm repositories: trusted ones, and the messages about invalid ones."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.packages.support.openpgp import Pgp, archive_of, pgp, provenance_text
from tests.packages.support.registry_contract import REPOSITORY
from tests.packages.support.web_server import Quiet, serving
from tests.packages.trust.test_trusted_registry import fetch, stored
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import TrustError
from wharfinger.packages.registry.manifest import (
    HELM_CHART,
    HELM_CONFIG,
    HELM_PROVENANCE,
    OCI_MANIFEST,
    write_manifest,
)
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.sources.source import HelmSource, open_source, source_text, without_policy
from wharfinger.packages.trust.policy import Policy
from wharfinger.packages.trust.provenance import MISSING
from wharfinger.packages.trust.report import report_on

__all__ = ["pgp"]
MISSED = "expected a provenance file, which spec.verify.keyring demands, found none"


async def pushed(folder: Path, archive: bytes, provenance: bytes | None, tag: str = "1.0.0") -> OciLayout:
    """Push a chart as `helm push` does, with its provenance file."""
    registry = OciLayout(folder / "layout")
    config = await registry.push_blob(REPOSITORY, HELM_CONFIG, b'{"name":"web"}')
    layers = [await registry.push_blob(REPOSITORY, HELM_CHART, archive)]
    if provenance is not None:
        layers.append(await registry.push_blob(REPOSITORY, HELM_PROVENANCE, provenance))
    manifest = write_manifest(config, tuple(layers), {})
    await registry.push_manifest(REPOSITORY, tag, manifest, OCI_MANIFEST)
    return registry


@dataclass(frozen=True)
class Case:
    """An invalid provenance file, and the expected message."""

    name: str = "web"
    version: str = "1.0.0"
    archive: bytes = b"archive"
    by: str = "ours"
    text: bytes = b""
    message: str = ""


OLD = "is for web 0.9.0, but web 1.0.0 was requested; publish the file of the requested version"
CASES = {
    "another key": Case(by="other", message="the signature was made with a key that is not in spec.verify.keyring"),
    "another archive": Case(
        archive=b"other", message="is for another archive of web 1.0.0; package and sign the chart again"
    ),
    "an old file": Case(version="0.9.0", message=OLD),
    "another chart": Case(name="shop", message="is for shop 1.0.0, but web 1.0.0 was requested"),
    "no digests": Case(
        text=b"name: web\nversion: 1.0.0\n", message="has 1 documents; expected Chart.yaml and the digests"
    ),
    "no YAML": Case(text=b"a: [\n...\nb: 1\n", message="cannot be read"),
    "another file": Case(
        text=provenance_text("web", "1.0.0", "0" * 64).replace(b"web-1.0.0.tgz", b"web-2.0.0.tgz"),
        message="is for another archive",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
async def test_invalid_provenance_files_are_refused(case: Case, pgp: Pgp, tmp_path: Path) -> None:
    digest = hashlib.sha256(case.archive).hexdigest()
    signed = pgp.sign(case.text or provenance_text(case.name, case.version, digest), case.by)
    registry = await pushed(tmp_path, b"archive", signed)
    with pytest.raises(TrustError) as caught:
        await fetch(registry, tmp_path, Policy(keyring=pgp.keyring("ours")))
    assert f"registry.example/{REPOSITORY}:1.0.0" in str(caught.value)
    assert case.message in str(caught.value)
    assert stored(tmp_path) == ""


async def test_a_chart_in_a_registry_is_verified_by_its_provenance_file(pgp: Pgp, tmp_path: Path) -> None:
    policy = Policy(keyring=pgp.keyring("other", "ours"))
    registry = await pushed(tmp_path, b"archive", pgp.provenance("web", "1.0.0", b"archive"))
    assert digest_of(b"archive").hex in await fetch(registry, tmp_path, policy)
    digest = (await registry.resolve(REPOSITORY, "1.0.0")).digest
    assert (await report_on(registry, REPOSITORY, digest, "stable", policy)).rows[-1] == ("trusted", "yes")
    assert "but web 2.0.0 was requested" in (await report_on(registry, REPOSITORY, digest, "2.0.0", policy)).refused


async def test_missing_and_oversized_provenance_files_are_refused(pgp: Pgp, tmp_path: Path) -> None:
    registry = await pushed(tmp_path, b"archive", None)
    with pytest.raises(TrustError, match=MISSED) as caught:
        await fetch(registry, tmp_path, Policy(keyring=pgp.keyring("ours")))
    assert str(caught.value).endswith(MISSING)
    registry = await pushed(tmp_path, b"archive", b"x" * (1024 * 1024 + 1))
    with pytest.raises(TrustError, match="the provenance file has 1048577 bytes; at most 1048576 are read"):
        await fetch(registry, tmp_path, Policy(keyring=pgp.keyring("ours")))
    assert stored(tmp_path) == ""


async def test_charts_of_a_helm_repository_are_verified_by_provenance_files(pgp: Pgp, tmp_path: Path) -> None:
    root = tmp_path / "served"
    root.mkdir()
    entries = []
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        archive = archive_of(chart(tmp_path / version, "web", version, {}))
        (root / f"web-{version}.tgz").write_bytes(archive)
        entries.append(f"{{version: {version}, urls: ['web-{version}.tgz?token=x']}}")
        if version == "1.0.0":
            (root / f"web-{version}.tgz.prov").write_bytes(pgp.provenance("web", version, archive))
        if version == "1.2.0":  # This is the provenance file of another archive, with a good signature.
            (root / f"web-{version}.tgz.prov").write_bytes(pgp.provenance("web", version, b"other"))
    (root / "index.yaml").write_text(f"entries: {{web: [{', '.join(entries)}]}}\n")
    with serving(root, Quiet) as url:
        source = HelmSource(url, verify=Policy(keyring=pgp.keyring("ours")))
        async with open_source(source, "web") as (registry, path):
            await registry.resolve(path, "1.0.0")
            with pytest.raises(TrustError, match=rf"web-1\.1\.0\.tgz.*: not trusted: {MISSED}") as caught:
                await registry.resolve(path, "1.1.0")
            assert caught.value.transient
            with pytest.raises(TrustError, match=r"is for another archive of web 1\.2\.0"):
                await registry.resolve(path, "1.2.0")
        async with open_source(without_policy(source), "web") as (registry, path):
            await registry.resolve(path, "1.1.0")
    assert source_text(source) != source_text(without_policy(source))
