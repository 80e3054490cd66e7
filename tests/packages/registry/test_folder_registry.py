"""A registry whose packages are folders: the part of the contract for readers, packages of every layout, and files that change
during a download.
"""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from tests.packages.support.memory_registry import MemoryRegistry
from tests.packages.support.registry_contract import READ_CONTRACT, REPOSITORY, ReadCheck, read
from wharfinger.packages.definition.global_folder import read_global_definition
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError
from wharfinger.packages.registry.folder_registry import FolderRegistry
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_CONFIG, OCI_LAYER, PACKAGE_CONFIG
from wharfinger.packages.registry.pusher import push_chart
from wharfinger.packages.store.disk_store import open_store

PACKAGE = {"package.yaml": "type: Application\nname: web\nversion: 1.0.0\n", "templates/a.yaml": "a: 1\n"}
MODULE = {"hooks/run.sh": "#!/bin/sh\n", "templates/a.yaml": "a: 1\n", "crds/x.yaml": ""}


@pytest.mark.parametrize("check", READ_CONTRACT, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("kind", ["chart", "package"])
async def test_a_folder_registry_fulfils_the_contract(kind: str, check: ReadCheck, tmp_path: Path) -> None:
    folder = tmp_path / REPOSITORY
    if kind == "chart":
        chart(folder, version="1.0.0")
    else:
        write(folder, PACKAGE)
    await check(FolderRegistry(tmp_path))


async def test_a_folder_has_the_digest_under_which_it_would_be_pushed(tmp_path: Path) -> None:
    chart(tmp_path / "web", version="1.0.0")
    write(tmp_path / "app", {**PACKAGE, "package.yaml": "type: Application\nversion: 2.0.0\n"})
    folders, pushed = FolderRegistry(tmp_path), MemoryRegistry()
    for name, version, config, layer in (
        ("web", "1.0.0", HELM_CONFIG, HELM_CHART),
        ("app", "2.0.0", PACKAGE_CONFIG, OCI_LAYER),
    ):
        descriptor = await folders.resolve(name, version)
        assert descriptor == await push_chart(tmp_path / name, pushed, name, version)
        manifest = await folders.manifest(name, descriptor.digest)
        assert manifest == await pushed.manifest(name, descriptor.digest)
        assert manifest.config.media_type == config
        assert [one.media_type for one in manifest.layers] == [layer]


async def test_another_version_is_not_found_and_the_error_names_the_existing_one(tmp_path: Path) -> None:
    write(tmp_path / "web", {**PACKAGE, "package.yaml": "type: Application\nversion: 1.0.0+a\n"})
    registry = FolderRegistry(tmp_path)
    assert await registry.tags("web") == ("1.0.0_a",)
    await registry.resolve("web", "1.0.0_a")
    with pytest.raises(ArtifactNotFoundError, match=r"web: expected version 2\.0\.0, found 1\.0\.0_a") as caught:
        await registry.resolve("web", "2.0.0")
    assert not caught.value.transient


async def test_a_package_without_a_version_is_found_under_any(tmp_path: Path) -> None:
    write(tmp_path / "002-tuner", MODULE)
    registry = FolderRegistry(tmp_path)
    assert await registry.tags("002-tuner") == ()
    assert await registry.resolve("002-tuner", "1.0.0") == await registry.resolve("002-tuner", "2.0.0")


async def test_a_package_folder_can_be_installed_and_deployed(tmp_path: Path) -> None:
    write(
        tmp_path / "packages" / "web", {**PACKAGE, "hooks/run.sh": "#!/bin/sh\n", ".helmignore": "notes\n", "notes": ""}
    )
    (tmp_path / "packages/web/hooks/run.sh").chmod(0o755)
    registry = FolderRegistry(tmp_path / "packages")
    manifest = await registry.manifest("web", (await registry.resolve("web", "1.0.0")).digest)
    async with open_store(tmp_path / "state") as store:
        await store.download(registry, "web", manifest)
        await store.install(manifest)
        link = await store.deploy("prod.web", manifest)
    found = {path.relative_to(link).as_posix() for path in link.rglob("*") if path.is_file()}
    assert found == {".helmignore", "package.yaml", "templates/a.yaml", "hooks/run.sh"}
    assert (link / "hooks/run.sh").stat().st_mode & 0o100


async def test_a_resolved_package_can_be_read_after_its_files_change(tmp_path: Path) -> None:
    """An author may save a file after the tag was resolved and before the package is downloaded. Until the tag is resolved
    again, the old content must be readable.
    """
    folder = write(tmp_path / "web", PACKAGE)
    registry = FolderRegistry(tmp_path)
    old = await registry.resolve("web", "1.0.0")
    manifest = await registry.manifest("web", old.digest)
    (folder / "templates/a.yaml").write_text("a: 2\n")
    assert await registry.manifest("web", old.digest) == manifest
    await read(registry, manifest.layers[0], "web")
    new = await registry.resolve("web", "1.0.0")
    assert new.digest != old.digest
    with pytest.raises(ArtifactNotFoundError, match=f"the folder's files have the digest {new.digest} now"):
        await registry.manifest("web", old.digest)
    with pytest.raises(ArtifactNotFoundError, match="have changed; request the package again"):
        await read(registry, manifest.layers[0], "web")
    # A new registry reads the folder again, and does not have to resolve the tag first.
    fresh = FolderRegistry(tmp_path)
    assert (await fresh.manifest("web", new.digest)).descriptor == new
    again = FolderRegistry(tmp_path)
    await read(again, (await fresh.manifest("web", new.digest)).layers[0], "web")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"README": ""}, "expected package.yaml"),
        ({"package.yaml": "type: Nothing\n"}, r"package\.yaml: type"),
        ({"package.yaml": "type: Application\nname: other\n"}, "was published as 'web'"),
        ({"Chart.yaml": "a: [\n"}, r"Chart\.yaml"),
        ({"openapi/settings.yaml": "type: 5\n"}, r"openapi/settings\.yaml"),
    ],
)
async def test_invalid_packages_are_refused_with_their_folder(files: dict[str, str], why: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "web", files)
    registry = FolderRegistry(tmp_path)
    with pytest.raises(ArtifactError, match=rf"^{folder}: .*{why}"):
        await registry.resolve("web", "1.0.0")


async def test_a_file_instead_of_a_folder_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "web").write_text("")
    with pytest.raises(ArtifactNotFoundError, match="no such folder"):
        await FolderRegistry(tmp_path).tags("web")


async def test_several_packages_of_one_registry_can_be_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        chart(tmp_path / name, name=name, version="1.0.0")
    registry = FolderRegistry(tmp_path)
    manifests = {}
    for name in ("one", "two", "one"):
        manifests[name] = await registry.manifest(name, (await registry.resolve(name, "1.0.0")).digest)
    async with open_store(tmp_path / "state") as store:
        for name, manifest in manifests.items():
            await store.download(registry, name, manifest)
            await store.install(manifest)


async def test_a_folder_of_global_hooks_is_served_as_a_package(tmp_path: Path) -> None:
    """A folder of global hooks has no file that identifies it as a package, and its hooks may be anywhere in it."""
    write(tmp_path, {"startup.sh": "#!/bin/sh\n", "openapi/values.yaml": "type: object\n"})
    registry = FolderRegistry(tmp_path)
    descriptor = await registry.resolve("global-hooks", "0.0.0")
    async with open_store(tmp_path / "state") as store:
        manifest = await registry.manifest("global-hooks", descriptor.digest)
        await store.download(registry, "global-hooks", manifest)
        tree = await store.install(manifest)
        assert (tree / "startup.sh").is_file()
        assert read_global_definition(tree, version="0.0.0").values_schema is not None


async def test_a_package_folder_named_global_hooks_is_served(tmp_path: Path) -> None:
    write(tmp_path / "global-hooks", {**MODULE, "module.yaml": "name: global-hooks\nversion: 3.0.0\n"})
    assert await FolderRegistry(tmp_path).tags("global-hooks") == ("3.0.0",)
    with pytest.raises(ArtifactNotFoundError, match="there is no such folder"):
        await FolderRegistry(tmp_path / "none").tags("global-hooks")
