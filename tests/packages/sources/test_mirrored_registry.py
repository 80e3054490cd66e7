"""Mirrors of a registry: the first address that answers is used, and mirrors do not get the login of the registry."""

from pathlib import Path

import pytest

from tests.packages.support.faulty_registry import Reply, open_faulty_registry
from tests.packages.support.registry_contract import READ_CONTRACT, REPOSITORY, ReadCheck, push, read
from tests.registry_server import PASSWORD, USER, open_registry_server
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactNotFoundError, RegistryError
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.sources.registry_rules import read_registry_rules
from wharfinger.packages.sources.source import Network, RegistrySource, open_repository, open_source

LOGIN = Credentials(USER, PASSWORD)


def mirrored(folder: Path, own: RegistryAddress, *mirrors: str) -> Network:
    """Return a network in which the registry has these mirrors; each is the TOML text of a mirror without its heading."""
    file = folder / "registries.conf"
    text = f'[[registry]]\nlocation = "{own}"\ninsecure = true\n'
    file.write_text(text + "".join(f"[[registry.mirror]]\ninsecure = true\n{mirror}\n" for mirror in mirrors))
    return Network(rules=read_registry_rules(file))


def source(address: RegistryAddress) -> RegistrySource:
    return RegistrySource(RepositoryAddress(address, "charts", "http"), LOGIN)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("check", READ_CONTRACT)
async def test_a_mirrored_registry_fulfils_the_contract(check: ReadCheck, tmp_path: Path) -> None:
    """The mirror is empty, so everything is read from the registry."""
    async with open_registry_server(tmp_path) as address, open_faulty_registry() as empty:
        async with open_registry(address, scheme="http") as registry:
            await push(registry, "1.0.0")
        network = mirrored(tmp_path, address, f'location = "{empty.address}"')
        repository = RepositoryAddress(address, REPOSITORY, "http")
        async with open_repository(RegistrySource(repository), repository, network) as opened:
            await check(opened)


async def test_the_registry_is_used_with_its_login_if_mirrors_fail(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path, with_password=True) as address, open_faulty_registry() as mirror:
        async with open_registry(address, scheme="http", credentials=LOGIN) as registry:
            pushed = await push(registry, "1.0.0", b"the layer")
        mirror.answer = lambda _: Reply(401, (("WWW-Authenticate", "Basic"),))
        network = mirrored(tmp_path, address, f'location = "{mirror.address}/cache"')
        async with open_source(source(address), "web", network=network) as (opened, path):
            assert await opened.resolve(path, "1.0.0") == pushed
            layer = (await opened.manifest(path, pushed.digest)).layers[0]
            assert await read(opened, layer, path) == b"the layer"
        assert {request.path.split("/")[2] for request in mirror.requests} == {"cache"}
        assert not any("authorization" in request.headers for request in mirror.requests)


async def test_a_digest_only_mirror_is_not_used_for_tags(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, open_faulty_registry() as mirror:
        async with open_registry(address, scheme="http") as registry:
            pushed = await push(registry, "1.0.0")
        network = mirrored(tmp_path, address, f'location = "{mirror.address}"\npull-from-mirror = "digest-only"')
        async with open_source(source(address), "web", network=network) as (opened, path):
            await opened.resolve(path, "1.0.0")
            assert await opened.tags(path) == ("1.0.0",)
            assert mirror.requests == []
            await opened.manifest(path, pushed.digest)
            assert len(mirror.requests) == 1


async def test_a_mirror_that_sends_other_bytes_is_skipped(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, open_faulty_registry() as mirror:
        async with open_registry(address, scheme="http") as registry:
            pushed = await push(registry, "1.0.0")
        mirror.answer = lambda _: Reply(body=b'{"schemaVersion":2}')
        network = mirrored(tmp_path, address, f'location = "{mirror.address}"\npull-from-mirror = "digest-only"')
        async with open_source(source(address), "web", network=network) as (opened, path):
            assert (await opened.manifest(path, pushed.digest)).descriptor == pushed


async def test_failures_of_registry_and_mirrors_are_reported_together(tmp_path: Path) -> None:
    async with open_faulty_registry() as own, open_faulty_registry() as mirror:
        network = mirrored(tmp_path, own.address, f'location = "{mirror.address}"')
        async with open_source(source(own.address), "web", network=network) as (opened, path):
            with pytest.raises(ArtifactNotFoundError) as caught:
                await opened.resolve(path, "1.0.0")
            assert str(caught.value) == (
                f"{own.address}/charts/web:1.0.0: not found (404); push it, or correct the name, tag or digest; its mirrors "
                f"failed as well: {mirror.address}/charts/web:1.0.0: not found (404); push it, or correct the name, tag or digest"
            )
            mirror.answer = lambda _: Reply(503)
            with pytest.raises(RegistryError) as failed:
                await opened.manifest(path, digest_of(b""))
            assert failed.value.transient
