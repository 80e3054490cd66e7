"""Git repositories as sources of a tree, read with the real git."""

import subprocess
from pathlib import Path

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.sources.fetcher import OfflineError, SourceError, SourceRequest
from wharfinger.offline.sources.git import GitFetcher
from wharfinger.offline.store.kinds import GIT_REPOSITORY
from wharfinger.runtime.fixpoint.model import Id


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository with the versions 1.0.0 and 1.1.0 as tags, and a newer commit on main."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for number, tag in enumerate(("1.0.0", "1.1.0", "")):
        (folder / "file.txt").write_text(f"{number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", f"{number}")
        if tag:
            git(folder, "tag", tag)
    return folder


def request(url: Path | str, **ref: str) -> SourceRequest:
    spec: JsonObject = {"url": str(url), "ref": {**ref}}
    return SourceRequest(Id(GIT_REPOSITORY, "a", "b"), {"spec": spec})


@pytest.mark.parametrize(
    ("ref", "content"),
    [({"branch": "main"}, "2"), ({"tag": "1.0.0"}, "0"), ({"semver": "1.x"}, "1"), ({"name": "refs/tags/1.1.0"}, "1")],
)
async def test_references_select_the_commit(
    ref: dict[str, str], content: str, repository: Path, tmp_path: Path
) -> None:
    artifact = await GitFetcher(tmp_path / "cache").fetch(request(repository, **ref))
    assert (artifact.folder / "file.txt").read_text().strip() == content
    assert not (artifact.folder / ".git").exists()


async def test_the_default_branch_is_that_of_the_repository(repository: Path, tmp_path: Path) -> None:
    fetcher = GitFetcher(tmp_path / "cache")
    main = await fetcher.fetch(request(repository, name="HEAD"))
    git(repository, "checkout", "-q", "-b", "trunk", "1.0.0")
    trunk = await fetcher.fetch(request(repository, name="HEAD"))
    assert [(each.folder / "file.txt").read_text().strip() for each in (main, trunk)] == ["2", "0"]


async def test_a_known_commit_needs_no_repository(repository: Path, tmp_path: Path) -> None:
    fetcher = GitFetcher(tmp_path / "cache")
    first = await fetcher.fetch(request(repository, branch="main"))
    repository.rename(tmp_path / "moved")
    again = await fetcher.fetch(request(repository, commit=first.revision))
    assert again == first
    with pytest.raises(SourceError, match="git fetch"):
        await fetcher.fetch(request(repository, branch="main"))


async def test_missing_revisions_are_reported(repository: Path, tmp_path: Path) -> None:
    fetcher = GitFetcher(tmp_path / "cache")
    with pytest.raises(SourceError, match=r"has no 'absent'; correct spec.ref"):
        await fetcher.fetch(request(repository, branch="absent"))
    with pytest.raises(SourceError, match=r"no tag satisfies spec.ref.semver '>=9'"):
        await fetcher.fetch(request(repository, semver=">=9"))
    with pytest.raises(SourceError, match="is not the address"):
        await fetcher.fetch(request("--upload-pack=evil"))


async def test_the_network_is_not_used_if_forbidden(tmp_path: Path) -> None:
    with pytest.raises(OfflineError, match="forbidden by --offline"):
        await GitFetcher(tmp_path / "cache", network=False).fetch(request("https://git.example.com/a/b"))


async def test_a_revision_of_a_local_repository_is_checked_out_to_a_folder(repository: Path, tmp_path: Path) -> None:
    fetcher = GitFetcher(tmp_path / "cache")
    folder = await fetcher.folder_of(repository, "HEAD~1")
    assert (folder / "file.txt").read_text() == "1\n"
    assert git(repository, "status", "--porcelain") == ""
    with pytest.raises(SourceError, match="no commit"):
        await fetcher.folder_of(repository, "absent")
