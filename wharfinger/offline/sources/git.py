"""Git repositories, fetched by the ``git`` program: a bare mirror for each address, and a folder for each commit.

``spec.ref`` has a commit, a name, a semantic version constraint over tags, a tag, or a branch. If it has several, the first in
this order counts, as in Flux. If it has a commit that is in the mirror already, nothing is fetched. Folders are complete or
absent: files are written to a temporary folder, which is renamed when it is complete.

:mod:`wharfinger.packages.git.git_program` runs Git. If the network is forbidden, only local repositories are fetched.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.json.value import find_str
from wharfinger.formats.version_constraint import ConstraintError
from wharfinger.offline.sources.cache_folder import COMMITS, GIT, mark_used, move_into_place, temporary_folder
from wharfinger.offline.sources.chart_version import newest
from wharfinger.offline.sources.fetcher import Artifact, OfflineError, SourceError, SourceRequest
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.git.git_program import GitProgram, is_local
from wharfinger.packages.git.remote import COMMIT
from wharfinger.process.command import Outcome

DEFAULT_REVISION: Final = "HEAD"
"""The value of ``spec.ref.name`` that means the repository's default branch."""
_DEFAULT_REF: Final = "refs/wharfinger/default"


class GitFetcher:
    """A fetcher of GitRepositories; implements :class:`~wharfinger.offline.sources.fetcher.Fetcher`."""

    def __init__(self, cache: Path, *, network: bool = True, environ: Mapping[str, str] | None = None) -> None:
        self._cache = cache
        self._network = network
        self._git = GitProgram(environ)
        self._locks = KeyedLocks()

    async def fetch(self, request: SourceRequest) -> Artifact:
        """Fetch the commit that the object names. Raises SourceError."""
        url = find_str(request.object, "spec", "url")
        local = is_local(url)
        if not url or url.startswith("-"):
            raise SourceError(f"spec.url: {url!r} is not the address of a git repository")
        if not local and not self._network:
            raise OfflineError(url, "repository")
        name = hashlib.sha256(url.encode()).hexdigest()[:16]
        async with self._locks.held(name):
            mirror = self._cache / GIT / name
            commit = find_str(request.object, "spec", "ref", "commit")
            if not (COMMIT.match(commit) and await self._has(mirror, commit)):
                await self._mirror(mirror, url)
                commit = await self._commit(mirror, request, url)
            await trio.to_thread.run_sync(mark_used, mirror)
            return Artifact(await self._folder(mirror, commit), commit)

    async def folder_of(self, repository: Path, revision: str) -> Path:
        """Return a folder with the files of a revision of a local repository. Raises SourceError."""
        outcome = await self._run(
            repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )
        if not outcome.ok:
            raise SourceError(f"{revision}: names no commit of the repository at {repository}")
        return await self._folder(repository, outcome.stdout.decode().strip())

    async def _has(self, mirror: Path, commit: str) -> bool:
        return (
            await trio.Path(mirror).is_dir() and (await self._run(mirror, "cat-file", "-e", f"{commit}^{{commit}}")).ok
        )

    async def _mirror(self, mirror: Path, url: str) -> None:
        if not await trio.Path(mirror / "HEAD").is_file():
            await trio.Path(mirror).mkdir(parents=True, exist_ok=True)
            await self._checked(mirror, "init", "--bare", "--quiet", ".")
        await self._checked(
            mirror, "fetch", "--quiet", "--prune", "--force", "--no-write-fetch-head", url,
            "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
        )  # fmt: skip

    async def _commit(self, mirror: Path, request: SourceRequest, url: str) -> str:
        """Return the commit that ``spec.ref`` names."""
        ref = {
            key: find_str(request.object, "spec", "ref", key) for key in ("commit", "name", "tag", "semver", "branch")
        }
        if ref["semver"] and not (ref["commit"] or ref["name"]):
            listed = await self._checked(mirror, "tag", "--list")
            try:
                tag = newest(listed.stdout.decode(errors="replace").split(), ref["semver"])
            except ConstraintError as error:
                raise SourceError(f"spec.ref.semver: {error}") from error
            if tag is None:
                raise SourceError(f"{url}: no tag satisfies spec.ref.semver {ref['semver']!r}")
            wanted = f"refs/tags/{tag}"
        else:
            wanted = ref["commit"] or ref["name"]
            if wanted == DEFAULT_REVISION:  # the HEAD of the mirror is not the HEAD of the repository
                await self._checked(mirror, "fetch", "--quiet", "--force", url, f"+HEAD:{_DEFAULT_REF}")
                wanted = _DEFAULT_REF
            wanted = wanted or (f"refs/tags/{ref['tag']}" if ref["tag"] else f"refs/heads/{ref['branch'] or 'master'}")
        outcome = await self._run(
            mirror, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{wanted}^{{commit}}"
        )
        if not outcome.ok:
            raise SourceError(
                f"{url}: has no {wanted.removeprefix('refs/heads/').removeprefix('refs/tags/')!r}; correct spec.ref"
            )
        return outcome.stdout.decode().strip()

    async def _folder(self, mirror: Path, commit: str) -> Path:
        """Return the folder with the files of a commit."""
        folder = self._cache / COMMITS / commit
        if await trio.Path(folder).is_dir():
            await trio.to_thread.run_sync(mark_used, folder)
            return folder
        await trio.Path(folder.parent).mkdir(parents=True, exist_ok=True)
        temporary = temporary_folder(folder.parent)
        index = temporary.with_suffix(".index")
        try:
            checkout = ("-c", "core.bare=false", "checkout", "--force", commit, "--", ".")
            await self._checked(mirror, "--work-tree", str(temporary), *checkout, index=index)
            await trio.to_thread.run_sync(move_into_place, temporary, folder)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(_discard, temporary, index)
        return folder

    async def _checked(self, repository: Path, *arguments: str, index: Path | None = None) -> Outcome:
        try:
            return await self._git.checked(repository, *arguments, index=index)
        except RegistryError as error:
            raise SourceError(str(error), transient=error.transient) from error

    async def _run(self, repository: Path, *arguments: str) -> Outcome:
        try:
            return await self._git.run(repository, *arguments)
        except RegistryError as error:
            raise SourceError(str(error), transient=error.transient) from error


def _discard(temporary: Path, index: Path) -> None:
    index.unlink(missing_ok=True)
    shutil.rmtree(temporary, ignore_errors=True)
