"""Tags and files of remote git repositories, read from a folder and over HTTP."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.packages.support.git_server import commit, git, make_repository, serving_git
from tests.packages.support.web_server import serving
from wharfinger.packages.errors import ArtifactNotFoundError, RegistryError
from wharfinger.packages.git.git_program import GitProgram
from wharfinger.packages.git.remote import list_tags, read_files

GIT = GitProgram()


def names(tar: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        return [member.name for member in archive if member.isfile()]


async def test_tags_and_files_are_read_from_folders_and_over_http(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "web")
    first = commit(folder, {"a/one": "1"}, "1.0.0")
    second = commit(folder, {"a/two": "2"}, "1.1.0", annotated=True)
    last = commit(folder, {"a/three": "3"})
    with serving_git(tmp_path) as server:
        for url in (f"file://{folder}", str(folder), f"{server.url}/web"):
            assert await list_tags(GIT, url) == {"1.0.0": first, "1.1.0": second}
            assert names(await read_files(GIT, url, "1.1.0", second, "a")) == ["one", "two"]
            assert names(await read_files(GIT, url, "", last, "")) == ["a/one", "a/three", "a/two"]


async def test_only_the_wanted_commit_is_fetched(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "web")
    commit(folder, {"large": "x" * 100_000}, "1.0.0")
    (folder / "large").unlink()
    second = commit(folder, {"a": "1"}, "1.1.0")
    with serving_git(tmp_path) as server:
        await read_files(GIT, f"{server.url}/web", "1.1.0", second, "")
        assert [each.split("?")[0] for each in server.requests] == [
            "GET /web/info/refs", "POST /web/git-upload-pack", "POST /web/git-upload-pack",
        ]  # fmt: skip


async def test_a_repository_served_as_plain_files_can_be_read(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "web")
    first = commit(folder, {"a": "1"}, "1.0.0")
    commit(folder, {"b": "1"})
    git(folder, "update-server-info")
    with serving(tmp_path) as url:
        assert await list_tags(GIT, f"{url}/web/.git") == {"1.0.0": first}
        assert names(await read_files(GIT, f"{url}/web/.git", "1.0.0", first, "")) == ["a"]
        assert names(await read_files(GIT, f"{url}/web/.git", "", first, "")) == ["a"]


async def test_missing_folders_commits_and_tags_are_reported(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "web")
    first = commit(folder, {"a/one": "1"}, "1.0.0")
    with pytest.raises(
        ArtifactNotFoundError,
        match=r"1.0.0 has no folder 'b'; correct the path of the repository, or the name of the package",
    ):
        await read_files(GIT, str(folder), "1.0.0", first, "b")
    with pytest.raises(ArtifactNotFoundError, match=r"has no folder 'a/one'"):
        await read_files(GIT, str(folder), "1.0.0", first, "a/one")
    with pytest.raises(ArtifactNotFoundError, match=rf"has no commit {'1' * 40}; correct the version"):
        await read_files(GIT, str(folder), "", "1" * 40, "")
    with pytest.raises(RegistryError, match=r"git fetch: .*couldn't find remote ref refs/tags/2.0.0"):
        await read_files(GIT, str(folder), "2.0.0", first, "")
    with pytest.raises(RegistryError, match=r"does not appear to be a git repository"):
        await list_tags(GIT, str(tmp_path))


async def test_a_tag_moved_during_the_read_is_a_transient_error(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "web")
    first = commit(folder, {"a": "1"}, "1.0.0")
    commit(folder, {"a": "2"}, "1.0.0")
    with pytest.raises(RegistryError, match=r"the tag 1.0.0 was moved while it was being read") as caught:
        await read_files(GIT, str(folder), "1.0.0", first, "")
    assert caught.value.transient


@pytest.mark.slow
async def test_a_repository_with_exponentially_many_files_is_refused(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "bomb")
    commit(folder, {"0/x": "x" * 10_000})
    tree = git(folder, "rev-parse", "HEAD:0")
    for _ in range(5):  # Each level contains the level below ten times.
        lines = "".join(f"040000 tree {tree}\tf{number}\n" for number in range(10))
        tree = make_tree(folder, lines)
    bomb = git(folder, "commit-tree", "-m", "bomb", tree)
    git(folder, "tag", "1.0.0", bomb)
    with pytest.raises(RegistryError, match=r"git archive: more than 67108864 bytes"):
        await read_files(GIT, str(folder), "1.0.0", bomb, "")


def make_tree(folder: Path, lines: str) -> str:
    done = subprocess.run(["git", "-C", folder, "mktree"], input=lines, text=True, capture_output=True, check=True)
    return done.stdout.strip()
