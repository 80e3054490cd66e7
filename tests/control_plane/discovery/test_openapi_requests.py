"""Requests generated from the OpenAPI documents. Valid or not, they never make the control plane fail or hang."""

import json
import random
from collections.abc import Iterable
from typing import Final

import pytest
import trio

from tests.control_plane.support.object_lives import NAMESPACES, Lives, seeds
from tests.control_plane.support.openapi_requests import Operation, drawn, operations
from tests.scale import scaled
from wharfinger.control_plane.discovery.openapi_data import version_3_names
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.service import ControlPlane, open_control_plane
from wharfinger.formats.json.value import encode_json
from wharfinger.httpd.messages import Request, Response, StreamingResponse, Upgrade

REQUESTS: Final = scaled(20_000, 1_000)
LIVES: Final = scaled(20_000, 1_000)
MEANT: Final = (
    "failed calling webhook",
    "resourceVersion should not be set on objects to be created",
    "resourceVersion: Invalid value",
    "target.",
    "failed to create typed patch object",
    "failed to convert new object",
    "does not contain declared merge key",
    "duplicate nodePort",
    "strconv.ParseUint: parsing",
    "unknown patch type",
    "unable to find api field in struct",
)
"""Failures (500) that a kube-apiserver has too."""


async def test_generated_requests_never_fail() -> None:
    draw = random.Random(8)  # noqa: S311 - repeatable on purpose
    async with open_control_plane(simulate=False) as control_plane:
        await _make_namespaces(control_plane)
        known = _known(control_plane, version_3_names())
        failed = []
        for _ in range(REQUESTS):
            request = drawn(draw.choice(known), draw)
            with trio.fail_after(300):
                answer = await control_plane.handler(request)
            assert not isinstance(answer, Upgrade)
            if _fails(answer):
                failed.append(_described(request, answer))

    assert failed == []


@pytest.mark.slow
async def test_generated_request_sequences_for_an_object_never_fail() -> None:
    draw = random.Random(9)  # noqa: S311 - repeatable on purpose
    async with open_control_plane(simulate=False) as control_plane:
        await _make_namespaces(control_plane)
        taken = seeds()
        for seed in taken:
            if seed.path.endswith("/customresourcedefinitions"):
                await control_plane.handler(Request("POST", seed.path, {}, {}, encode_json(seed.body)))
        served = {f"apis/{kind.group}/{version.name}" for kind in _customs(control_plane) for version in kind.versions}
        by_place = {(one.method, one.path): one for one in _known(control_plane, (*version_3_names(), *sorted(served)))}
        lives = Lives(draw, taken, by_place)
        failed = []
        for _ in range(LIVES):
            request = lives.drawn()
            with trio.fail_after(300):
                answer = await control_plane.handler(request)
            assert isinstance(answer, Response)
            lives.saw(request, answer)
            if _fails(answer):
                failed.append(_described(request, answer))

    assert failed == []
    assert lives.created * 3 >= lives.creates > LIVES // 10


def _customs(control_plane: ControlPlane) -> list[Kind]:
    return [kind for kind in control_plane.backend.catalog.kinds() if kind.custom]


async def _make_namespaces(control_plane: ControlPlane) -> None:
    for name in NAMESPACES:
        body = f'{{"metadata": {{"name": "{name}"}}}}'.encode()
        await control_plane.handler(Request("POST", "/api/v1/namespaces", {}, {}, body))


def _known(control_plane: ControlPlane, names: Iterable[str]) -> list[Operation]:
    """Return all operations in the OpenAPI version 3 documents with these names."""
    known: list[Operation] = []
    for name in names:
        document = control_plane.handler.documents.openapi.version_3(name)
        assert document is not None
        known += operations(json.loads(document.body))
    return known


def _fails(answer: Response | StreamingResponse) -> bool:
    return (
        isinstance(answer, Response)
        and answer.status == 500
        and not any(text.encode() in answer.body for text in MEANT)
    )


def _described(request: Request, answer: Response | StreamingResponse) -> str:
    said = answer.body[:300] if isinstance(answer, Response) else b""
    return f"{request.method} {request.path} {dict(request.query)} {request.headers} {request.body[:500]!r}: {said!r}"
