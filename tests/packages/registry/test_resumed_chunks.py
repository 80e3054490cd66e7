"""Broken transfers of layers: they are resumed, even after the login has expired, but fail if they make no progress."""

import pytest

from tests.packages.support.faulty_registry import (
    REPOSITORY,
    FaultyRegistry,
    Reply,
    Request,
    open_faulty_registry,
    sample,
)
from tests.packages.support.registry_contract import read
from wharfinger.packages.errors import DigestError, LoginRefusedError, RegistryError
from wharfinger.packages.registry.connection import RegistryAccess
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_registry import open_registry

LAYER = bytes(range(256)) * 400
SAMPLE = sample(LAYER)
LOGIN = Credentials("porter", "first")


def broken(at: int, start: int = 0) -> Reply:
    """Return a reply with the layer from byte ``start`` on. It is cut after ``at`` bytes, or complete if ``at`` is -1."""
    span = (("Content-Range", f"bytes {start}-{len(LAYER) - 1}/{len(LAYER)}"),) if start else ()
    return Reply(206 if start else 200, span, LAYER[start:], cut=None if at < 0 else at)


def ranges(faulty: FaultyRegistry) -> list[str]:
    return [request.headers.get("range", "") for request in faulty.requests]


async def test_a_broken_transfer_is_resumed() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(SAMPLE.layer, broken(30_000), broken(20_000, start=30_000), broken(-1, start=50_000))
        assert await read(registry, SAMPLE.layer, REPOSITORY) == LAYER
        assert ranges(faulty) == ["", "bytes=30000-", "bytes=50000-"]


async def test_a_server_without_ranges_sends_the_whole_layer_again() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(SAMPLE.layer, broken(30_000), broken(60_000), broken(-1))
        assert await read(registry, SAMPLE.layer, REPOSITORY) == LAYER


async def test_a_transfer_without_progress_is_given_up() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(SAMPLE.layer, broken(30_000), broken(0, start=30_000))
        with pytest.raises(RegistryError) as caught:
            await read(registry, SAMPLE.layer, REPOSITORY)
        assert caught.value.transient
        assert ranges(faulty) == ["", *["bytes=30000-"] * 2]


@pytest.mark.parametrize(
    "claimed",
    ["bytes 0-102399/102400", "bytes 30000-102399/9", "bytes 30001-102399/102400", "", "items 30000-2/102400"],
)
async def test_a_resumed_transfer_with_another_range_is_refused(claimed: str) -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(SAMPLE.layer, broken(30_000), Reply(206, (("Content-Range", claimed),), LAYER[30_000:]))
        with pytest.raises(DigestError, match="requested the bytes from 30000 on, but the registry sent other bytes"):
            await read(registry, SAMPLE.layer, REPOSITORY)


async def test_a_layer_that_disappears_during_the_transfer_is_an_error() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(SAMPLE.layer, broken(30_000), Reply(404))
        with pytest.raises(RegistryError, match="not found"):
            await read(registry, SAMPLE.layer, REPOSITORY)


async def test_a_token_that_expires_during_a_layer_is_replaced() -> None:
    async with open_faulty_registry() as faulty:
        valid = ["one"]
        replies = [broken(30_000), broken(-1, start=30_000)]

        def answer(request: Request) -> Reply:
            if request.path == "/token":
                return Reply(body=b'{"token":"%s"}' % valid[0].encode())
            if request.headers.get("authorization") != f"Bearer {valid[0]}":
                return Reply(401, (("WWW-Authenticate", f'Bearer realm="http://{faulty.address}/token"'),))
            valid[0] = "two"
            return replies.pop(0)

        faulty.answer = answer
        async with open_registry(faulty.address, scheme="http", credentials=LOGIN) as registry:
            assert await read(registry, SAMPLE.layer, REPOSITORY) == LAYER
        blob = f"/v2/{REPOSITORY}/blobs/{SAMPLE.layer.digest}"
        assert [request.path for request in faulty.requests] == [blob, "/token", blob, blob, "/token", blob]


async def test_a_storage_url_that_expires_during_a_layer_is_replaced() -> None:
    """When a URL of the storage has expired, the registry redirects to a new one. The storage never gets the login."""
    async with open_faulty_registry() as faulty, open_faulty_registry() as storage:
        places = iter(("/first", "/second"))

        def answer(request: Request) -> Reply:
            if request.headers.get("authorization") != LOGIN.basic():
                return Reply(401, (("WWW-Authenticate", "Basic"),))
            return Reply(307, (("Location", f"http://{storage.address}{next(places)}"),))

        faulty.answer = answer
        storage.on("GET", "/first", broken(30_000), Reply(403))
        storage.on("GET", "/second", broken(-1, start=30_000))
        async with open_registry(faulty.address, scheme="http", credentials=LOGIN) as registry:
            assert await read(registry, SAMPLE.layer, REPOSITORY) == LAYER
        assert [(each.path, each.headers.get("authorization")) for each in storage.requests] == [
            ("/first", None),
            ("/second", None),
        ]


@pytest.mark.parametrize("newer", [True, False])
@pytest.mark.parametrize("by_token", [True, False])
async def test_a_login_rotated_during_a_layer_is_read_again(newer: bool, by_token: bool) -> None:
    """After a refusal, the login is read again from its source. If it has not changed, it is not tried again."""
    renewed: list[str] = []

    async def renew() -> Credentials:
        renewed.append("asked")
        return Credentials("porter", "second" if newer else "first")

    async with open_faulty_registry() as faulty:
        valid = [LOGIN.basic()]
        replies = [broken(30_000), broken(-1, start=30_000)]
        token = f'Bearer realm="http://{faulty.address}/token"'

        def answer(request: Request) -> Reply:
            given = request.headers.get("authorization")
            if request.path == "/token":
                return Reply(body=b'{"token":"%s"}' % valid[0][6:].encode()) if given == valid[0] else Reply(401)
            wanted = f"Bearer {valid[0][6:]}" if by_token else valid[0]
            if given != wanted:
                return Reply(401, (("WWW-Authenticate", token if by_token else "Basic"),))
            valid[0] = Credentials("porter", "second").basic()
            return replies.pop(0)

        faulty.answer = answer
        access = RegistryAccess(renew=renew)
        async with open_registry(faulty.address, scheme="http", credentials=LOGIN, access=access) as registry:
            if newer:
                assert await read(registry, SAMPLE.layer, REPOSITORY) == LAYER
            else:
                with pytest.raises(LoginRefusedError, match="authentication failed"):
                    await read(registry, SAMPLE.layer, REPOSITORY)
        assert renewed == ["asked"]
