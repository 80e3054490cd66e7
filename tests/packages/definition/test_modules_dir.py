"""Modules directories: their modules, their other files, and errors."""

import os
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.definition import modules_dir
from wharfinger.packages.definition.definition import UNNUMBERED_WEIGHT, read_definition
from wharfinger.packages.definition.modules_dir import FoundModule, ModulesDirs, read_modules_dirs
from wharfinger.packages.errors import ArtifactError


def look(*paths: Path) -> ModulesDirs:
    return read_modules_dirs(paths)


def folders(found: ModulesDirs) -> list[str]:
    return [module.folder for module in found.modules]


def test_modules_are_sorted_by_weight_and_name(tmp_path: Path) -> None:
    for folder in ("100-beta", "20-gamma", "alpha", "100-alfa", "2-module-name", "l2-load-balancer"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".git").mkdir()
    found = look(tmp_path)
    assert folders(found) == ["alpha", "l2-load-balancer", "2-module-name", "20-gamma", "100-alfa", "100-beta"]
    assert found.modules[0] == FoundModule("alpha", UNNUMBERED_WEIGHT, "alpha", tmp_path)
    assert found.modules[-1].path == tmp_path / "100-beta"
    assert (found.warnings, found.broken, found.enabled, found.global_values) == ((), frozenset(), {}, {})


def test_a_definition_has_the_weight_found_in_the_directory(tmp_path: Path) -> None:
    """Both definitions are read from the module's folder alone. One folder looks like a plain chart, and the other one is
    empty.
    """
    write(tmp_path, {"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/values.yaml": "web: {a: 1}"})
    (tmp_path / "7-empty").mkdir()
    for module, static in zip(look(tmp_path).modules, ({"a": 1}, {}), strict=True):
        definition = read_definition(module.path, name=module.folder, version="", in_modules_dir=True)
        assert (definition.name, definition.weight) == (module.name, module.weight)
        assert (definition.layout, definition.static_values) == ("ModuleFolder", static)


def test_links_to_folders_are_modules_and_broken_links_are_reported(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/values.yaml": "a: 1", "modules/README.md": "", "modules/values.yaml": ""})
    modules = tmp_path / "modules"
    (modules / "001-linked").symlink_to(tmp_path / "elsewhere")
    (modules / "002-gone").symlink_to(tmp_path / "nowhere")
    (modules / "003-round").symlink_to(modules / "003-round")
    (modules / "file").symlink_to(modules / "README.md")
    found = look(modules)
    assert folders(found) == ["001-linked"]
    assert found.broken == {"gone", "round"}
    assert found.warnings == (
        f"{modules}/002-gone: a broken link; remove it, or restore its target",
        f"{modules}/003-round: a broken link; remove it, or restore its target",
        f"{modules}/README.md: neither a module's folder nor values.yaml; it is ignored",
        f"{modules}/file: neither a module's folder nor values.yaml; it is ignored",
    )


@pytest.mark.parametrize("name", ["module_one", "Web", "a--b", "web-1", "global"])
def test_an_invalid_module_name_is_reported_and_other_modules_are_found(name: str, tmp_path: Path) -> None:
    write(tmp_path, {f"010-{name}/values.yaml": "", "web/values.yaml": ""})
    found = look(tmp_path)
    assert folders(found) == ["web"]
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith(f"{tmp_path}/010-{name}: module '{name}': ")


def test_the_first_of_several_modules_of_one_name_is_used(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "one/values.yaml": "web: {from: one}",
            "one/020-web/values.yaml": "",
            "one/030-web/values.yaml": "",
            "two/values.yaml": "web: {from: two}\nwebEnabled: true",
            "two/010-web/values.yaml": "web: [",
        },
    )
    found = look(tmp_path / "one", tmp_path / "two")
    assert [module.path for module in found.modules] == [tmp_path / "one" / "020-web"]
    assert found.static == {"web": {"from": "one"}}
    assert found.enabled == {"web": True}  # The flag of a module may be in any directory.
    assert found.broken == frozenset()
    assert found.warnings == (
        f"{tmp_path}/one/030-web: module web is also in {tmp_path}/one/020-web, which is used instead",
        f"{tmp_path}/two/010-web: module web is also in {tmp_path}/one/020-web, which is used instead",
    )


def test_static_values_and_flags_are_merged_from_all_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "one/values.yaml": "global: {a: 1, c: {one: 1}}\nwebShop: {size: 1}\nwebShopEnabled: false\nblogEnabled: true",
            "one/web-shop/values.yaml": "webShop: {colour: red}\nwebShopEnabled: true",
            "one/blog/values.yaml": "size: 2",
            "two/values.yaml": "global: {a: 2, b: 2, c: {two: 2}}",
            "two/wiki/values.yaml": "wiki: {size: 3}\nwikiEnabled: true",
            "two/mail/values.yaml": "",
            "three/none/hooks/a": "",
        },
    )
    found = look(tmp_path / "one", tmp_path / "two", tmp_path / "three")
    assert found.global_values == {"a": 1, "b": 2, "c": {"one": 1, "two": 2}}
    assert found.static == {"web-shop": {"size": 1}, "blog": {}, "wiki": {}, "mail": {}, "none": {}}
    # Values of the directory override those of the module.
    assert found.enabled == {"web-shop": False, "blog": True, "wiki": True}
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("webEnabled: 'true'", r"/values\.yaml: webEnabled: expected true or false, found a string"),
        ("strangerEnabled: 1", r"/values\.yaml: strangerEnabled: expected true or false, found an integer"),
        ("web: 3", r"/values\.yaml: web: expected an object, found an integer"),
        ("global: []", r"/values\.yaml: global: expected an object, found a list"),
        ("a: [", r"modules directory .*: values\.yaml: line 2"),
    ],
)
def test_an_invalid_directory_fails_the_scan_of_all_directories(values: str, message: str, tmp_path: Path) -> None:
    """A partial scan would look as if the modules of the invalid directory were disabled or removed."""
    write(tmp_path, {"bad/values.yaml": values, "bad/web/hooks/a": "", "good/blog/hooks/a": ""})
    with pytest.raises(ArtifactError, match=message):
        look(tmp_path / "good", tmp_path / "bad")


def test_a_missing_modules_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("none", "file"):
        with pytest.raises(ArtifactError, match=f"modules directory .*/{name}: not a folder; name an existing one"):
            look(tmp_path / name)


def test_an_unreadable_modules_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ArtifactError, match=r"cannot be read: Permission denied"):
        look(tmp_path)


def test_a_modules_directory_with_too_many_entries_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a/hooks/a": "", "b/hooks/a": ""})
    monkeypatch.setattr(modules_dir, "MAX_ENTRIES", 1)
    with pytest.raises(ArtifactError, match="more than 1 entries"):
        look(tmp_path)


def test_a_module_with_an_unreadable_flag_is_broken_and_not_removed(tmp_path: Path) -> None:
    write(
        tmp_path, {"010-web/values.yaml": "webEnabled: yes please", "020-blog/values.yaml": "a: [", "wiki/enabled": ""}
    )
    found = look(tmp_path)
    assert folders(found) == ["wiki"]
    assert found.broken == {"web", "blog"}
    assert [warning.partition(": ")[0] for warning in found.warnings] == [f"{tmp_path}/010-web", f"{tmp_path}/020-blog"]
    assert "webEnabled: expected true or false, found a string" in found.warnings[0]


def test_values_of_unknown_modules_are_reported(tmp_path: Path) -> None:
    text = "\n".join(f"{key}: {{}}" for key in ("wep", "a", "b", "c", "d", "e", "web", "global"))
    write(tmp_path, {"values.yaml": f"{text}\nwebbEnabled: true", "web/hooks/a": ""})
    assert look(tmp_path).warnings == (f"{tmp_path}/values.yaml: there is no module for a, b, c, d, e, …",)
