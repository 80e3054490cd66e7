"""Packages: the cost of pulling, rendering, unpacking, reading and packing, compared with simple code for the same work."""

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import trio
import yaml

from bench.measure import Ratio, compare, compare_async
from bench.samples import SETTINGS_SCHEMA, archive_of
from tests.registry_server import open_registry_server
from wharfinger.formats.archives.archive import extract_layers
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.definition.definition import read_definition
from wharfinger.packages.registry.folder_registry import FolderRegistry
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.rendering.chart_engine import EngineLimits, open_chart_engine
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.rendering.renderer import RenderRequest

MEGABYTES = 30
FILES = 400
HITS = 20
VERSIONS = 400
"""The number of kinds that a cluster with a few operators serves. A kind counts once for each of its versions."""
CHART = Path(__file__).resolve().parent.parent / "examples" / "web-service"
PACKAGE = "apiVersion: v1\ntype: Application\nname: web\nversion: 1.0.0\nrequirements: {kubernetes: '>=1.28'}\n"


def measure(long: bool) -> Iterator[Ratio]:
    """Measure pulling and verifying a blob, rendering a small chart, unpacking layers, and reading and packing a package."""
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        package = _package(Path(folder) / "packages" / "web")
        return [
            await _pull(Path(folder)),
            *await _render(Path(folder)),
            _layers(Path(folder)),
            _definition(package),
            await _pack(package),
        ]


async def _pull(folder: Path) -> Ratio:
    data = os.urandom(MEGABYTES * 1_000_000)
    async with (
        open_registry_server(folder) as address,
        open_registry(address, scheme="http") as registry,
        httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client,
    ):
        blob = await registry.push_blob("bench/blob", "application/octet-stream", data)

        async def ours() -> None:
            async with registry.blob("bench/blob", blob) as chunks:
                async for _chunk in chunks:
                    pass

        async def theirs() -> None:
            digest = hashlib.sha256()
            async with client.stream("GET", f"/v2/bench/blob/blobs/{blob.digest}") as answer:
                async for chunk in answer.aiter_raw():
                    digest.update(chunk)

        return await compare_async(
            "packages", f"pull {MEGABYTES} MB, verified", "httpx stream + sha256", ours, theirs, budget=1.5
        )


async def _render(folder: Path) -> list[Ratio]:
    helm = shutil.which("helm")
    if helm is None:
        raise SystemExit("bench: helm is not on PATH; run `make bench`")
    renderer = HelmRenderer(Path(helm), folder / "scratch")
    cache = CachingRenderer(renderer, EntryCache(folder / "renders"))
    request = RenderRequest(
        CHART, "sha256:" + "0" * 64, "web", "demo", {}, "v1.36.0", ("v1", "apps/v1"), is_upgrade=False
    )
    versions = tuple(f"group{number % 60}.example/v1/Kind{number}" for number in range(VERSIONS))
    real = replace(request, api_versions=versions)
    flags = [f"--api-versions={version}" for version in versions]

    async def bare(*more: str) -> None:
        await trio.run_process([helm, "template", "web", str(CHART), *more], capture_stdout=True)

    async def from_memory() -> None:
        for _ in range(HITS):
            await cache.render(request)

    async def from_disk() -> None:
        for _ in range(HITS):
            await CachingRenderer(renderer, EntryCache(folder / "renders")).render(request)

    small = "render a small chart"
    compared = [
        await compare_async(
            "packages", small, "bare helm template", lambda: renderer.render(request), bare, budget=1.5
        ),
        await compare_async(
            "packages",
            f"{small}, {VERSIONS} API versions",
            "bare helm template with them",
            lambda: renderer.render(real),
            lambda: bare(*flags),
            budget=1.5,
        ),
    ]
    if engine := shutil.which("wharfinger-engine"):
        limits = EngineLimits(60.0, 64 * 1024 * 1024, 2 * 1024**3, workers=1)
        async with open_chart_engine(Path(engine), folder, None, limits) as resident:
            by_engine = HelmRenderer(Path(helm), folder / "scratch", engine=resident)
            compared.append(
                await compare_async(
                    "packages",
                    f"{small}, engine",
                    "bare helm template",
                    lambda: by_engine.render(request),
                    bare,
                    budget=0.5,
                )
            )
    for what, ours, budget in (("in memory", from_memory, 0.05), ("on disk", from_disk, 0.1)):
        found = await compare_async(
            "packages", f"{small}, kept {what}", "rendered anew", ours, lambda: renderer.render(request), budget=budget
        )
        compared.append(found.each_of(HITS))
    return compared


def _layers(folder: Path) -> Ratio:
    below = archive_of(range(FILES - 100), size=5_000)
    above = archive_of(range(FILES - 150, FILES), size=5_000, hides=range(20))
    numbers = iter(range(10_000))

    def ours() -> None:
        layers = [("below", io.BytesIO(below)), ("above", io.BytesIO(above))]
        extract_layers(layers, folder / f"layers-{next(numbers)}", what="bench")

    def theirs() -> None:
        into = folder / f"layers-{next(numbers)}"
        for layer in (below, above):
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                tar.extractall(into, filter="data")

    what = f"extract_layers, 2 layers, {FILES} files"
    return compare("packages", what, "tarfile.extractall, no whiteouts", ours, theirs, budget=2.0)


def _definition(package: Path) -> Ratio:
    read = ("package.yaml", "values.yaml", "openapi/settings.yaml", "openapi/values.yaml", "images_digests.json")
    assert read_definition(package, name="web", version="1.0.0").settings_schema is not None

    def theirs() -> None:
        for name in read:
            yaml.load((package / name).read_bytes(), yaml.CSafeLoader)

    return compare(
        "packages",
        "read_definition, 2 schemas of 50 properties",
        "its files through yaml.CSafeLoader",
        lambda: read_definition(package, name="web", version="1.0.0"),
        theirs,
        budget=4.0,
    )


async def _pack(package: Path) -> Ratio:
    async def ours() -> None:
        await FolderRegistry(package.parent).resolve("web", "1.0.0")

    async def theirs() -> None:
        await trio.to_thread.run_sync(_tarred, package)

    what = f"FolderRegistry resolve, {FILES} files"
    return await compare_async("packages", what, "tarfile, gzip -9", ours, theirs, budget=2.0)


def _tarred(package: Path) -> int:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as tar,
    ):
        tar.add(package, ".")
    return len(packed.getvalue())


def _package(folder: Path) -> Path:
    """Write a package with a ``package.yaml``, two schemas of 50 properties each, and many templates."""
    (folder / "openapi").mkdir(parents=True)
    (folder / "templates").mkdir()
    schema = write_yaml(SETTINGS_SCHEMA)
    template = (CHART / "templates" / "deployment.yaml").read_text()
    (folder / "package.yaml").write_text(PACKAGE)
    (folder / "values.yaml").write_text("internal: {replicas: 3}\n")
    (folder / "openapi" / "settings.yaml").write_text(schema)
    (folder / "openapi" / "values.yaml").write_text("x-extend: {schema: config-values.yaml}\n" + schema)
    (folder / "images_digests.json").write_text('{"web": "sha256:' + "0" * 64 + '"}')
    for number in range(FILES):
        (folder / "templates" / f"{number}.yaml").write_text(f"# {number}\n{template}")
    return folder
