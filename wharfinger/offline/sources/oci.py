"""The fetcher of OCI artifacts: the artifacts of OCIRepositories, and charts in registries."""

from dataclasses import replace

from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.formats.version_constraint import ConstraintError
from wharfinger.offline.sources.chart_version import newest
from wharfinger.offline.sources.fetcher import Artifact, OfflineError, SourceError, SourceRequest
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import PackageError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.registry.address import RepositoryAddress, parse_repository
from wharfinger.packages.registry.docker_config import read_docker_config
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.sources.source import Network, RegistrySource, open_repository
from wharfinger.packages.store.store import Store


class OciFetcher:
    """A fetcher of OCIRepositories and of charts in registries. If a source names no Secret, the logins in ``sources`` are used
    for it.
    """

    def __init__(self, store: Store, *, network: bool = True, sources: Network | None = None) -> None:
        self._store = store
        self._network = network
        self._sources = sources or Network()
        self._locks = KeyedLocks()

    async def fetch(self, request: SourceRequest) -> Artifact:
        """Fetch the artifact of an OCIRepository. Raises SourceError."""
        spec = request.object
        tag = find_str(spec, "spec", "ref", "tag", default="latest")
        return await self._fetch(
            find_str(spec, "spec", "url"),
            tag=tag,
            wanted=find_str(spec, "spec", "ref", "semver"),
            digest=find_str(spec, "spec", "ref", "digest"),
            insecure=find(spec, "spec", "insecure") is True,
            login=(request.secret or {}).get(".dockerconfigjson"),
        )

    async def chart(self, repository: JsonObject, name: str, version: str, secret: bytes | None) -> Artifact:
        """Fetch a chart from a HelmRepository of type ``oci``. Raises SourceError."""
        url = f"{find_str(repository, 'spec', 'url').rstrip('/')}/{name}"
        insecure = find(repository, "spec", "insecure") is True
        return await self._fetch(url, tag="", wanted=version or "*", digest="", insecure=insecure, login=secret)

    async def _fetch(
        self, url: str, *, tag: str, wanted: str, digest: str, insecure: bool, login: bytes | None
    ) -> Artifact:
        try:
            address = parse_repository(url, insecure=insecure)
            if not self._network and not address.registry.is_loopback:
                raise OfflineError(url, "registry")
            own = None if login is None else read_docker_config(login, address.registry, address.path)
            # A source that names a Secret uses no other login, even if the Secret has no login for the registry.
            sources = self._sources if login is None else replace(self._sources, logins=None)
            async with (
                self._locks.held(str(address)),
                open_repository(RegistrySource(address, own), address, sources) as registry,
            ):
                found = await self._digest(registry, address, tag, wanted, digest)
                manifest = await self._store.installed(found)
                if manifest is None:
                    manifest = await registry.manifest(address.path, found)
                    await self._store.download(registry, address.path, manifest)
                return Artifact(await self._store.install(manifest), str(manifest.descriptor.digest))
        except ConstraintError as error:
            raise SourceError(f"{url}: {error}") from error
        except PackageError as error:
            raise SourceError(str(error), transient=error.transient) from error

    async def _digest(
        self, registry: Registry, address: RepositoryAddress, tag: str, wanted: str, digest: str
    ) -> Digest:
        if digest:
            return Digest(digest)
        if wanted:
            # A tag cannot contain "+", so helm writes "_" instead.
            tags = {each.replace("_", "+"): each for each in await registry.tags(address.path)}
            chosen = newest(tags, wanted)
            if chosen is None:
                listed = ", ".join(sorted(tags)[-5:]) or "none"
                raise SourceError(f"{address}: no version satisfies {wanted!r}; it has: {listed}")
            tag = tags[chosen]
        return (await registry.resolve(address.path, tag)).digest
