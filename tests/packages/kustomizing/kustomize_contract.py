"""The contract of every :class:`wharfinger.packages.kustomizing.kustomize.KustomizeBuilder`.

To use it, write ``@pytest.mark.parametrize("check", CONTRACT)``, and call ``await check(builder, folder)`` with an empty folder
and a builder that may not use the network. If the builder has a cache, a second call of a check uses the results of the first.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.offline.support import config_map, write_tree
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.packages.kustomizing.kustomization import Folder, Manifests, Overlay
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder, KustomizeError

Check = Callable[[KustomizeBuilder, Path], Awaitable[None]]


def names(objects: tuple[JsonObject, ...]) -> list[str]:
    return [find_str(each, "metadata", "name") for each in objects]


async def check_a_folder_is_built_with_files_of_other_folders(builder: KustomizeBuilder, folder: Path) -> None:
    files = {
        "a/kustomization.yaml": "resources: [../b/map.yaml]\nnamespace: apps\n",
        "b/map.yaml": config_map("x", "other"),
    }
    write_tree(folder, files)
    (obj,) = await builder.build(Folder(folder / "a", "a"))
    assert find_str(obj, "metadata", "namespace") == "apps"


async def check_objects_have_the_order_of_kustomize(builder: KustomizeBuilder, folder: Path) -> None:
    files = {f"{name}.yaml": config_map(name) for name in ("c", "a", "b")}
    for order, wanted in (("fifo", ["c", "a", "b"]), ("legacy", ["a", "b", "c"])):
        text = f"resources: [c.yaml, a.yaml, b.yaml]\nsortOptions: {{order: {order}}}\n"
        write_tree(folder, {"kustomization.yaml": text, **files})
        assert names(await builder.build(Folder(folder, "."))) == wanted


async def check_an_overlay_changes_nothing_on_the_disk(builder: KustomizeBuilder, folder: Path) -> None:
    write_tree(folder, {"a/x/map.yaml": config_map("m"), "a/y.yaml": config_map("n")})
    before = sorted(folder.rglob("*"))
    overlay = Overlay(folder / "a", "apps", ("x/map.yaml", "y.yaml"), {"namePrefix": "p-"})
    assert names(await builder.build(overlay)) == ["p-m", "p-n"]
    assert sorted(folder.rglob("*")) == before


async def check_given_manifests_are_transformed(builder: KustomizeBuilder, folder: Path) -> None:
    assert not list(folder.iterdir())
    objects = await builder.build(Manifests("postRenderers", config_map("m"), {"nameSuffix": "-s"}))
    assert names(objects) == ["m-s"]


async def check_patches_of_fields_are_not_read_from_files(builder: KustomizeBuilder, folder: Path) -> None:
    write_tree(folder, {"tree/m.yaml": config_map("m"), "patch.yaml": config_map("m", word="hidden")})
    for patches in ([{"path": str(folder / "patch.yaml")}], [{"Path": "../patch.yaml"}], [str(folder / "patch.yaml")]):
        fields: JsonObject = {"patches": [*patches]}
        for what in (Overlay(folder / "tree", ".", ("m.yaml",), fields), Manifests("x", config_map("m"), fields)):
            with pytest.raises(
                KustomizeError, match="patches: an entry names a file, which is not allowed here; write"
            ):
                await builder.build(what)
    patched = Manifests("x", config_map("m"), {"patches": [{"patch": config_map("m", word="seen"), "path": ""}]})
    (obj,) = await builder.build(patched)
    assert find_str(obj, "data", "word") == "seen"


async def check_a_changed_file_changes_the_build(builder: KustomizeBuilder, folder: Path) -> None:
    write_tree(folder, {"kustomization.yaml": "resources: [m.yaml]\n"})
    for name in ("one", "two", "one"):
        (folder / "m.yaml").write_text(config_map(name))
        assert names(await builder.build(Folder(folder, "."))) == [name]


async def check_errors_use_the_folder_name_of_the_caller(builder: KustomizeBuilder, folder: Path) -> None:
    write_tree(folder, {"a/kustomization.yaml": "resources: [absent.yaml]\n"})
    for what in (Folder(folder / "a", "apps"), Overlay(folder / "a", "apps", (".",), {})):
        with pytest.raises(KustomizeError, match=r"apps.*absent\.yaml") as error:
            await builder.build(what)
        assert str(folder) not in str(error.value)
        assert not error.value.transient


async def check_the_network_is_not_used(builder: KustomizeBuilder, folder: Path) -> None:
    write_tree(folder, {"kustomization.yaml": "resources: ['https://127.0.0.1:9/x.yaml']\n"})
    with pytest.raises(KustomizeError, match=r"127\.0\.0\.1:9"):
        await builder.build(Folder(folder, "."))


CONTRACT: tuple[Check, ...] = (
    check_a_folder_is_built_with_files_of_other_folders,
    check_objects_have_the_order_of_kustomize,
    check_an_overlay_changes_nothing_on_the_disk,
    check_given_manifests_are_transformed,
    check_patches_of_fields_are_not_read_from_files,
    check_a_changed_file_changes_the_build,
    check_errors_use_the_folder_name_of_the_caller,
    check_the_network_is_not_used,
)
