"""Bringing a package here: what verification costs over the plain transfer, from a real registry."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import trio

from bench.measure import Ratio, compare_async
from tests.registry_server import open_registry_server
from wharfinger.packages.helm_renderer import HelmRenderer
from wharfinger.packages.oci_registry import open_registry
from wharfinger.packages.renderer import RenderRequest

MEGABYTES = 30
CHART = Path(__file__).resolve().parent.parent / "examples" / "web-service"


def measure() -> Iterator[Ratio]:
    """A blob pulled and verified, and a small chart rendered."""
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        return [await _pull(Path(folder)), await _render(Path(folder))]


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


async def _render(folder: Path) -> Ratio:
    helm = shutil.which("helm")
    if helm is None:
        raise SystemExit("bench: helm is not on PATH; run `make bench`")
    renderer = HelmRenderer(Path(helm), folder / "scratch")
    request = RenderRequest(
        CHART, "sha256:" + "0" * 64, "web", "demo", {}, "v1.36.0", ("v1", "apps/v1"), is_upgrade=False
    )

    async def theirs() -> None:
        await trio.run_process([helm, "template", "web", str(CHART)], capture_stdout=True)

    return await compare_async(
        "packages", "render a small chart", "bare helm template", lambda: renderer.render(request), theirs, budget=1.5
    )
