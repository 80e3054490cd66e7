"""The client of OCI registries. The contract is checked with a real registry, and errors with the wrong answers of a faulty
one.
"""

from pathlib import Path

import pytest
import trio

from tests.packages.support.faulty_registry import (
    REPOSITORY,
    FaultyRegistry,
    Reply,
    open_faulty_registry,
    same_length,
    sample,
)
from tests.packages.support.registry_contract import CONTRACT, READ_CONTRACT, Check, ReadCheck, push, read
from tests.packages.support.token_realm import open_token_registry
from tests.registry_server import PASSWORD, USER, open_registry_server
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError, DigestError, RegistryError
from wharfinger.packages.registry.connection import Timeouts
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.manifest import HELM_CHART, MAX_MANIFEST, OCI_INDEX, OCI_MANIFEST
from wharfinger.packages.registry.oci_registry import OciRegistry, open_registry
from wharfinger.packages.registry.verified_blob import LeastSpeed

TYPE = ("Content-Type", OCI_MANIFEST)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: str(check.__name__))
async def test_an_empty_registry_fulfils_the_contract(check: Check, tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, open_registry(address, scheme="http") as registry:
        await check(registry)


@pytest.mark.parametrize("check", READ_CONTRACT, ids=lambda check: str(check.__name__))
async def test_a_registry_with_an_artifact_fulfils_the_contract(check: ReadCheck, tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, open_registry(address, scheme="http") as registry:
        await push(registry, "1.0.0")
        await check(registry)


async def test_a_registry_with_a_password_needs_the_right_login(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path, with_password=True) as address:
        async with open_registry(address, scheme="http", credentials=Credentials(USER, PASSWORD)) as registry:
            pushed = await push(registry, "1.0.0")
            assert await registry.resolve("charts/web", "1.0.0") == pushed
        for wrong in (None, Credentials(USER, "wr0ng"), Credentials("nobody", PASSWORD)):
            async with open_registry(address, scheme="http", credentials=wrong) as registry:
                with pytest.raises(
                    RegistryError, match=r"authentication failed .* check user name and password"
                ) as caught:
                    await registry.resolve("charts/web", "1.0.0")
                assert not caught.value.transient
                assert "wr0ng" not in str(caught.value)
                with pytest.raises(RegistryError, match="authentication failed"):
                    await push(registry, "2.0.0")


@pytest.mark.parametrize("identity", ["", "1dentity-t0ken"])
async def test_a_registry_that_requires_tokens_can_be_used(identity: str, tmp_path: Path) -> None:
    login = Credentials(USER, PASSWORD, identity)
    async with open_token_registry(tmp_path, login) as there:
        async with open_registry(there.address, scheme="http", credentials=login) as registry:
            pushed = await push(registry, "1.0.0")
            assert (
                await registry.manifest("charts/web", (await registry.resolve("charts/web", "1.0.0")).digest)
            ).layers
            assert pushed == await registry.resolve("charts/web", "1.0.0")
            await push(registry, "1.0.0", repository="charts/other")
        asked = [(request.method, request.path) for request in there.realm.requests]
        # There is one token per repository to look up blobs and one to push. One more is for pulls from the first repository.
        assert asked == [("POST" if identity else "GET", "/token")] * 5
        if identity:
            assert all("authorization" not in request.headers for request in there.realm.requests)
        for wrong in (None, Credentials(USER, "wr0ng"), Credentials(USER, "", "wr0ng")):
            async with open_registry(there.address, scheme="http", credentials=wrong) as registry:
                with pytest.raises(RegistryError, match=r"token for .*authentication failed") as caught:
                    await registry.resolve("charts/web", "1.0.0")
                assert "wr0ng" not in str(caught.value)


async def test_concurrent_tasks_can_authenticate(tmp_path: Path) -> None:
    async with (
        open_registry_server(tmp_path, with_password=True) as address,
        open_registry(address, scheme="http", credentials=Credentials(USER, PASSWORD)) as registry,
        trio.open_nursery() as nursery,
    ):
        for number in range(6):
            nursery.start_soon(push, registry, f"1.0.{number}", bytes([number]), f"charts/web{number}")


@pytest.mark.parametrize("claimed", [True, False])
async def test_a_manifest_with_another_digest_is_refused(claimed: bool) -> None:
    artifact = sample()
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        # The header has the digest that was requested, but the body is another manifest.
        other = sample(b"something else").manifest_bytes
        headers = (TYPE, ("Docker-Content-Digest", artifact.manifest.digest.text)) if claimed else (TYPE,)
        faulty.manifest(artifact.manifest.digest.text, Reply(headers=headers, body=other))
        faulty.manifest("1.0.0", Reply(headers=headers, body=other))
        with pytest.raises(DigestError, match="another digest") as caught:
            await registry.manifest(REPOSITORY, artifact.manifest.digest)
        assert caught.value.transient
        assert (await registry.resolve(REPOSITORY, "1.0.0")).digest == digest_of(other)


async def test_a_manifest_over_the_limit_is_not_read() -> None:
    artifact = sample()
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        for chunked in (False, True):
            faulty.manifest("1.0.0", Reply(headers=(TYPE,), body=b" " * (MAX_MANIFEST + 1), chunked=chunked))
            with pytest.raises(RegistryError, match="more than"):
                await registry.resolve(REPOSITORY, "1.0.0")
        faulty.manifest("1.0.0", Reply(headers=(TYPE,), body=artifact.manifest_bytes))
        assert await registry.resolve(REPOSITORY, "1.0.0") == artifact.manifest


async def test_an_invalid_manifest_is_an_artifact_error() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        for body in (b"<html>", b"[]", b'{"mediaType":5}', b"\xff", b'{"mediaType":"text"}'):
            faulty.manifest("1.0.0", Reply(headers=(("Content-Type", "text/html; charset=x"),), body=body))
            with pytest.raises(ArtifactError):
                await registry.resolve(REPOSITORY, "1.0.0")
        index = b'{"schemaVersion":2,"manifests":[]}'
        digest = digest_of(index)
        faulty.manifest(digest.text, Reply(headers=(("Content-Type", OCI_INDEX),), body=index))
        with pytest.raises(ArtifactError, match="the index has nothing"):
            await registry.manifest(REPOSITORY, digest)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_blob_with_other_bytes_is_a_digest_error(chunked: bool) -> None:
    artifact = sample(b"x" * 200_000)
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(artifact.layer, Reply(body=same_length(artifact.layer_bytes), chunked=chunked))
        with pytest.raises(DigestError, match="another digest") as caught:
            await read(registry, artifact.layer)
        assert caught.value.transient


async def test_a_blob_that_is_too_long_is_aborted_at_once() -> None:
    artifact = sample(b"x" * 1_000)
    endless = artifact.layer_bytes + b"y" * 5_000_000
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(artifact.layer, Reply(body=endless, chunked=True))
        got = 0
        with pytest.raises(DigestError, match="more than the 1000 bytes"):
            async with registry.blob(REPOSITORY, artifact.layer) as chunks:
                async for chunk in chunks:
                    got += len(chunk)
        assert got <= 1_000
        faulty.blob(artifact.layer, Reply(body=endless))
        with pytest.raises(DigestError, match=r"announces 5001000 bytes, the manifest 1000"):
            await read(registry, artifact.layer)


async def test_a_blob_that_is_too_short_is_an_error() -> None:
    artifact = sample(b"x" * 100_000)
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(artifact.layer, Reply(body=artifact.layer_bytes, cut=70_000))
        with pytest.raises(RegistryError) as caught:
            await read(registry, artifact.layer)
        assert caught.value.transient
        faulty.blob(artifact.layer, Reply(body=artifact.layer_bytes[:-1], chunked=True))
        with pytest.raises(DigestError, match="99999 bytes instead of 100000"):
            await read(registry, artifact.layer)
        faulty.blob(artifact.layer, Reply(body=artifact.layer_bytes))
        assert await read(registry, artifact.layer) == artifact.layer_bytes


async def test_a_blob_transfer_that_is_too_slow_is_aborted() -> None:
    artifact = sample(b"x" * 100)
    hurry = Timeouts(read_s=60, least=LeastSpeed(10**9, 0.2))
    async with (
        open_faulty_registry() as faulty,
        open_registry(faulty.address, scheme="http", patience=hurry) as registry,
    ):
        # The body never ends: fewer bytes are sent than announced, and the connection stays open.
        head = Reply(headers=(("Content-Length", "100"),), body=b"x", stay=True)
        faulty.blob(artifact.layer, head)
        with pytest.raises(
            RegistryError, match=r"too slow: [01] of 100 bytes so far, less than .* KiB/s over 0.2 s"
        ) as caught:
            await read(registry, artifact.layer)
        assert caught.value.transient


async def test_all_pages_of_tags_are_read() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        path = f"/v2/{REPOSITORY}/tags/list"
        link = ("Link", f'<{path}?n=2&last=b>; rel="next"')
        absolute = ("Link", f"<https://{faulty.address}{path}?n=2&last=d>; rel=next")
        faulty.on(
            "GET",
            path,
            Reply(headers=(link,), body=b'{"name":"x","tags":["b","a"]}'),
            Reply(headers=(absolute,), body=b'{"tags":["d","c","not a tag!",7]}'),
            Reply(body=b'{"tags":["e"]}'),
        )
        assert await registry.tags(REPOSITORY) == ("a", "b", "c", "d", "e")
        assert [request.query for request in faulty.requests] == ["n=1000", "n=2&last=b", "n=2&last=d"]


async def test_a_circular_listing_of_tags_ends() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        path = f"/v2/{REPOSITORY}/tags/list"
        link = ("Link", f'<{path}?last=a>; rel="next"')
        faulty.on("GET", path, Reply(headers=(link,), body=b'{"tags":["a"]}'))
        assert await registry.tags(REPOSITORY) == ("a",)
        assert len(faulty.requests) == 2


async def test_an_endless_listing_of_tags_is_refused() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        path = f"/v2/{REPOSITORY}/tags/list"
        link = ("Link", f'<{path}?last=a>; rel="next"')
        pages = [
            Reply(
                headers=(link,), body=b'{"tags":[%s]}' % b",".join(b'"p%d-%d"' % (page, tag) for tag in range(30_000))
            )
            for page in range(6)
        ]
        faulty.on("GET", path, *pages)
        with pytest.raises(RegistryError, match="more than 100000 tags"):
            await registry.tags(REPOSITORY)


async def test_a_next_page_on_another_host_is_refused() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        path = f"/v2/{REPOSITORY}/tags/list"
        faulty.on(
            "GET", path, Reply(headers=(("Link", '<http://other.invalid/x>; rel="next"'),), body=b'{"tags":["a"]}')
        )
        with pytest.raises(RegistryError, match=r"another host \(other\.invalid\)"):
            await registry.tags(REPOSITORY)


async def test_an_empty_list_of_tags_is_accepted_and_html_is_refused() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        path = f"/v2/{REPOSITORY}/tags/list"
        faulty.on("GET", path, Reply(body=b'{"name":"charts/web","tags":null}'), Reply(body=b"<html>hello</html>"))
        assert await registry.tags(REPOSITORY) == ()
        with pytest.raises(RegistryError, match="is this a registry"):
            await registry.tags(REPOSITORY)


def script_upload(faulty: FaultyRegistry, location: str) -> None:
    base = f"/v2/{REPOSITORY}/blobs"
    faulty.on("POST", f"{base}/uploads/", Reply(202, (("Location", location),)))
    faulty.on("PUT", f"{base}/uploads/1", Reply(201))


@pytest.mark.parametrize("prefix", ["", "http://{address}", "https://{address}", "http://127.0.0.1:1"])
async def test_a_blob_is_uploaded_to_the_given_location(prefix: str) -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        script_upload(
            faulty, prefix.format(address=faulty.address) + f"/v2/{REPOSITORY}/blobs/uploads/1?_state=a%3D%3D"
        )
        blob = await registry.push_blob(REPOSITORY, HELM_CHART, b"data")
        put = faulty.requests[-1]
        assert (put.method, put.body) == ("PUT", b"data")
        assert put.headers["content-type"] == "application/octet-stream"
        assert put.query == f"_state=a%3D%3D&digest=sha256%3A{blob.digest.hex}"


async def test_an_upload_to_another_host_is_refused() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        for location in ("http://other.invalid/x", "http://[", ""):
            script_upload(faulty, location)
            with pytest.raises(RegistryError):
                await registry.push_blob(REPOSITORY, HELM_CHART, b"data")
        assert all(request.method != "PUT" for request in faulty.requests)


async def test_an_existing_blob_is_not_uploaded_again() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        path = f"/v2/{REPOSITORY}/blobs/{digest_of(b'data')}"
        faulty.on("HEAD", path, Reply(headers=(("Content-Length", "4"),)))
        await registry.push_blob(REPOSITORY, HELM_CHART, b"data")
        assert faulty.asked() == [("HEAD", path)]
        # The registry reports another size for the blob, so the blob is uploaded again.
        faulty.on("HEAD", path, Reply(headers=(("Content-Length", "5"),)))
        script_upload(faulty, f"/v2/{REPOSITORY}/blobs/uploads/1")
        await registry.push_blob(REPOSITORY, HELM_CHART, b"data")
        assert faulty.requests[-1].method == "PUT"


async def test_a_registry_is_printed_with_scheme_host_and_port() -> None:
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        assert isinstance(registry, OciRegistry)
        assert str(registry) == f"http://{faulty.address}"


@pytest.mark.parametrize("steps", range(1, 12))
async def test_a_transfer_may_be_cancelled_at_any_time(steps: int) -> None:
    artifact = sample(b"x" * 300_000)
    async with open_faulty_registry() as faulty, open_registry(faulty.address, scheme="http") as registry:
        faulty.blob(artifact.layer, Reply(body=artifact.layer_bytes))
        with trio.CancelScope() as scope:
            async with registry.blob(REPOSITORY, artifact.layer) as chunks:
                left = steps
                async for _ in chunks:
                    left -= 1
                    if not left:
                        scope.cancel()
        assert await read(registry, artifact.layer) == artifact.layer_bytes
