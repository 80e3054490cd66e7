"""Sources: the tree itself, fetched sources, and kinds of sources for which the caller must give a fetcher."""

from pathlib import Path

import pytest

from tests.offline.sources.test_git import git
from tests.offline.support import built, config_map, flux_id, kustomization, names, opened, write_tree
from wharfinger.offline.sources.fetcher import Artifact, SourceRequest
from wharfinger.offline.sources.fetchers import FetchersFrozenError

SOURCE = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata: {{name: far, namespace: flux-system}}\nspec: {spec}\n"


class Given:
    """A fetcher that returns a given folder."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[SourceRequest] = []
        self._folder = folder

    async def fetch(self, request: SourceRequest) -> Artifact:
        self.requests.append(request)
        return Artifact(self._folder, "1")


def of_far(kind: str) -> str:
    return kustomization("web", "./").replace(
        "{kind: GitRepository, name: flux-system}", f"{{kind: {kind}, name: far}}"
    )


async def test_a_source_of_another_repository_is_fetched(tmp_path: Path) -> None:
    far = write_tree(tmp_path / "far", {"map.yaml": config_map("far")})
    git(far, "init", "-q", "-b", "master")
    git(far, "add", ".")
    git(far, "commit", "-qm", "one")
    files = {
        "source.yaml": SOURCE.format(kind="GitRepository", spec=f"{{url: 'file://{far}'}}"),
        "ks.yaml": of_far("GitRepository"),
    }
    assert names(await built(write_tree(tmp_path / "tree", files), tmp_path)) == ["far"]


async def test_a_bucket_is_fetched_by_the_fetcher_of_the_caller(tmp_path: Path) -> None:
    given = Given(write_tree(tmp_path / "bin", {"map.yaml": config_map("from-bucket")}))
    files = {
        "source.yaml": SOURCE.format(kind="Bucket", spec="{bucketName: x, secretRef: {name: login}}"),
        "login.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: flux-system}\nstringData: {user: me}\n",
        "ks.yaml": of_far("Bucket"),
    }
    async with opened(write_tree(tmp_path / "tree", files), tmp_path) as orchestrator:
        assert orchestrator.with_fetcher("Bucket", given) is orchestrator
        result = await orchestrator.render()
        with pytest.raises(FetchersFrozenError, match="before bootstrap"):
            orchestrator.with_fetcher("Bucket", None)
    assert "from-bucket" in names(result)
    (request,) = given.requests
    assert request.id == flux_id("Bucket", "far")
    assert request.secret == {"user": b"me"}


async def test_a_bucket_of_another_group_is_a_manifest(tmp_path: Path) -> None:
    text = "apiVersion: s3.example.com/v1\nkind: Bucket\nmetadata: {name: far, namespace: apps}\n"
    result = await built(write_tree(tmp_path / "tree", {"bucket.yaml": text}), tmp_path)
    assert not result.failed
    assert [each.id.kind for each in result.objects] == ["Bucket.s3.example.com"]


async def test_a_suspended_source_blocks_nodes_that_need_its_files(tmp_path: Path) -> None:
    files = {
        "source.yaml": SOURCE.format(kind="GitRepository", spec="{suspend: true, url: x}"),
        "ks.yaml": of_far("GitRepository"),
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert "has no files: it is suspended" in result.failed[flux_id("Kustomization", "web")].message
