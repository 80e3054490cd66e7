"""A remote git repository, read without a lasting clone: its tags, and the files of one commit.

Only the wanted commit is fetched (``--depth 1``), into a repository that is deleted afterwards. If the server cannot send a
single commit, all branches and tags are fetched. The files are not checked out, but read as an archive of bounded size: a
small repository can reference one folder so often that its files would fill every disk.
"""

import re
import tempfile
from pathlib import Path
from typing import Final

from wharfinger.packages.errors import ArtifactNotFoundError, RegistryError
from wharfinger.packages.git.git_program import ANYBODY, GitAccess, GitProgram, failure

COMMIT: Final = re.compile(r"[0-9a-f]{40}\Z")
MAX_TAGS: Final = 100_000
_WANTED: Final = "refs/wharfinger/wanted"
_TAGS: Final = "refs/tags/"
_PEELED: Final = "^{}"
_NO_SHALLOW: Final = re.compile(r"does not support shallow|unadvertised object|not our ref", re.IGNORECASE)
"""Parts of the messages of servers that cannot send a single commit."""


async def list_tags(git: GitProgram, url: str, access: GitAccess = ANYBODY) -> dict[str, str]:
    """Return the tags of a repository, each with its commit. Raises RegistryError."""
    outcome = await git.checked(Path("/"), "ls-remote", "--tags", "--", url, access=access)
    tags: dict[str, str] = {}
    for line in outcome.stdout.decode(errors="replace").splitlines():
        commit, _, name = line.partition("\t")
        if not (COMMIT.match(commit) and name.startswith(_TAGS)):
            continue
        # An annotated tag is listed twice; the second line has the commit that it points at.
        tags[name.removeprefix(_TAGS).removesuffix(_PEELED)] = commit
        if len(tags) > MAX_TAGS:
            raise RegistryError(f"{url}: more than {MAX_TAGS} tags", transient=False)
    return tags


async def read_files(git: GitProgram, url: str, tag: str, commit: str, path: str, access: GitAccess = ANYBODY) -> bytes:
    """Return the files of a folder of a commit as a tar. ``tag`` points at the commit; "" if the commit has no tag.

    Raises RegistryError, and ArtifactNotFoundError if the commit or the folder does not exist.
    """
    with tempfile.TemporaryDirectory(prefix="wharfinger-git-", ignore_cleanup_errors=True) as made:
        place = Path(made)
        await git.checked(place, "init", "--bare", "--quiet", ".")
        await _fetch(git, place, url, f"{_TAGS}{tag}" if tag else commit, access)
        if tag:
            found = await git.checked(place, "rev-parse", "--verify", "--quiet", f"{_WANTED}^{{commit}}")
            if found.stdout.decode().strip() != commit:
                raise RegistryError(f"{url}: the tag {tag} was moved while it was being read", transient=True)
        elif not (await git.run(place, "cat-file", "-e", f"{commit}^{{commit}}")).ok:
            raise ArtifactNotFoundError(f"{url}: has no commit {commit}; correct the version")
        tree = f"{commit}:{path}"
        kind = await git.run(place, "cat-file", "-t", tree)
        if kind.stdout.strip() != b"tree":
            raise ArtifactNotFoundError(
                f"{url}: {tag or commit} has no folder {path!r}; correct the path of the repository, or the name of the package"
            )
        return (await git.checked(place, "archive", "--format=tar", tree)).stdout


async def _fetch(git: GitProgram, place: Path, url: str, wanted: str, access: GitAccess) -> None:
    """Fetch a reference, or a commit, into a new repository."""
    quietly = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance")
    only = await git.run(place, *quietly, "--depth=1", "--", url, f"+{wanted}:{_WANTED}", access=access)
    if only.ok:
        return
    error = failure("fetch", only)
    if not _NO_SHALLOW.search(str(error)):
        raise error
    await git.checked(
        place, *quietly, "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", access=access
    )
    await git.run(place, "update-ref", _WANTED, wanted)
