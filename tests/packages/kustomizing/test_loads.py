"""The check of the files that kustomizations and charts load."""

import itertools
import json
import os
from pathlib import Path

import pytest

from tests.offline.support import config_map, write_tree
from wharfinger.packages.kustomizing.loads import (
    MAX_KUSTOMIZATION,
    MAX_LOADED,
    LoadError,
    RealPaths,
    check_links,
    check_loads,
    kustomization_file,
    read_kustomization,
)

SOUND = {
    "tree/apps/map.yaml": config_map("x"),
    "tree/base/map.yaml": config_map("y"),
    "tree/base/kustomization.yaml": "resources: [map.yaml]\n",
    "tree/empty/readme": "",
    "outside/kustomization.yaml": "resources: []\n",
    "outside/secret": "hidden",
    "outside/folder/x": "",
}


def checked(folder: Path, kustomization: str) -> None:
    write_tree(folder, {**SOUND, "tree/apps/kustomization.yaml": kustomization})
    check_loads(folder / "tree" / "apps", folder / "tree")


@pytest.mark.parametrize(
    "text",
    [
        "resources: [map.yaml, ../base, absent.yaml, ../empty, ../../absent, 'https://example.com/x', ../../outside/folder]",
        "configMapGenerator: [{name: x, files: [map.yaml, key=../base/map.yaml], literals: [a=../../outside/secret]}]",
        "commonAnnotations: {config: /etc/passwd}\nimages: [{name: x, newName: ../../outside/secret}]",
        'patches: [{patch: "- op: test\\n  path: /etc/passwd"}]',
        "resources: [../apps, '', 7, null, {a: b}]",
        "- no mapping",
    ],
)
def test_files_inside_of_the_source_may_be_loaded(tmp_path: Path, text: str) -> None:
    checked(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "resources: [../../outside/secret]",
        "resources: [/etc/passwd]",
        "bases: [../../outside]",
        "components: [../../outside]",
        "secretGenerator: [{name: x, files: [key=../../outside/secret]}]",
        "secretGenerator: [{name: x, envs: [../../outside/secret]}]",
        "patches: [{path: ../../outside/secret}]",
        "replacements: [{path: ../../outside/secret}]",
        "openapi: {path: ../../outside/secret}",
        "anything: {new: [../../outside/secret]}",
    ],
)
def test_files_outside_of_the_source_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(LoadError, match="which lies outside of the source; copy it into the source") as error:
        checked(tmp_path, text)
    assert error.value.file.name == "kustomization.yaml"


def test_loaded_kustomizations_are_checked_recursively(tmp_path: Path) -> None:
    write_tree(tmp_path, {"tree/more/kustomization.yml": "resources: [/etc/passwd]\n"})
    with pytest.raises(LoadError) as error:
        checked(tmp_path, "resources: [../more]")
    assert error.value.file == (tmp_path / "tree" / "more" / "kustomization.yml").resolve()
    write_tree(tmp_path, {"tree/plain/map.yaml": config_map("x")})
    with pytest.raises(LoadError):
        check_loads(tmp_path / "tree" / "plain", tmp_path / "tree", ["../more"])
    with pytest.raises(LoadError):
        check_loads(tmp_path / "tree" / "plain", tmp_path / "tree", ["../../outside"])


def test_the_files_of_a_generator_are_checked(tmp_path: Path) -> None:
    generator = "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: x}\nfiles: [key=../../outside/secret]\n"
    write_tree(tmp_path, {"tree/apps/generator.yaml": generator})
    with pytest.raises(LoadError, match="outside"):
        checked(tmp_path, "generators: [generator.yaml]")


def secret_generator(file: str) -> str:
    return json.dumps(
        {"apiVersion": "builtin", "kind": "SecretGenerator", "metadata": {"name": "x"}, "files": [f"key={file}"]}
    )


@pytest.mark.parametrize("field", ["generators", "Generators", "tran\u017fformers", "VALIDATORS"])
@pytest.mark.parametrize("is_block", [False, True])
def test_a_generator_in_the_kustomization_itself_is_checked(tmp_path: Path, field: str, *, is_block: bool) -> None:
    text = secret_generator("../../outside/secret")
    if is_block:
        text = "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: x}\nfiles:\n- key=../../outside/secret\n"
    with pytest.raises(LoadError, match="outside"):
        checked(tmp_path, json.dumps({field: [text]}))
    checked(tmp_path, json.dumps({field: [secret_generator("map.yaml")]}))


def test_a_generator_that_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    write_tree(tmp_path, {"tree/base/x.yaml": secret_generator("/etc/passwd")})
    for text in ("../base", "https://example.com/a/b", "absent.yaml"):
        with pytest.raises(LoadError, match="as a plugin, which cannot be checked, because it is not a file"):
            checked(tmp_path, json.dumps({"generators": [text]}))
    with pytest.raises(LoadError, match="cannot be checked: a plugin:"):
        checked(tmp_path, json.dumps({"generators": ["{a: b"]}))
    large = "#" * MAX_KUSTOMIZATION + "\n" + secret_generator("../../outside/secret")
    write_tree(tmp_path, {"tree/apps/large.yaml": large})
    with pytest.raises(LoadError, match=r"cannot be checked: large\.yaml: .* is over the limit"):
        checked(tmp_path, "generators: [large.yaml]")


@pytest.mark.parametrize(
    "text",
    [
        "k=a\n/../../../outside/secret",
        "a\nk=../../outside/secret",
        "k=x://../../../outside/secret",
        "k=" + "x/../" * 2000 + "../../outside/secret",
        "k=a\0/../../../outside/secret",
        "k=link/../../../outside/secret",
    ],
    ids=["newline", "newline-in-key", "address", "long", "nul", "link"],
)
def test_paths_are_cleaned_as_kustomize_does(tmp_path: Path, text: str) -> None:
    write_tree(tmp_path, {**SOUND, "tree/a/b/c/d/map.yaml": ""})
    (tmp_path / "tree" / "apps" / "link").symlink_to("../a/b/c/d")
    with pytest.raises(LoadError, match="outside"):
        checked(tmp_path, json.dumps({"configMapGenerator": [{"name": "x", "files": [text]}]}))


@pytest.mark.parametrize(
    "text", ["file:///srv/repository", " FILE:///srv/repository", "git::file:///srv/repository//a?ref=b"]
)
def test_a_local_repository_outside_of_the_source_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(LoadError, match="a repository outside of the source; copy it into the source"):
        checked(tmp_path, json.dumps({"resources": [text]}))


def test_a_patch_with_a_path_in_its_text_may_be_loaded(tmp_path: Path) -> None:
    patch = "- op: add\n  path: /spec/args/-\n  value: --passwords=/etc/passwd"
    checked(tmp_path, json.dumps({"patches": [{"patch": patch}], "patchesStrategicMerge": [patch]}))


def test_links_are_checked_by_their_target(tmp_path: Path) -> None:
    write_tree(tmp_path, SOUND)
    (tmp_path / "tree" / "apps" / "inside.yaml").symlink_to(tmp_path / "tree" / "base" / "map.yaml")
    (tmp_path / "tree" / "apps" / "outside.yaml").symlink_to(tmp_path / "outside" / "secret")
    checked(tmp_path, "resources: [inside.yaml]")
    with pytest.raises(LoadError, match=r"'outside\.yaml', which lies outside"):
        checked(tmp_path, "resources: [outside.yaml]")


def test_a_large_file_and_a_pipe_are_refused(tmp_path: Path) -> None:
    write_tree(tmp_path, SOUND)
    os.mkfifo(tmp_path / "tree" / "apps" / "pipe.yaml")
    with (tmp_path / "tree" / "apps" / "large.bin").open("wb") as file:
        file.truncate(MAX_LOADED + 1)
    with pytest.raises(LoadError, match=r"'pipe\.yaml', which is not a file"):
        checked(tmp_path, "resources: [pipe.yaml]")
    with pytest.raises(LoadError, match=rf"'large\.bin', which has more than {MAX_LOADED} bytes"):
        checked(tmp_path, "configMapGenerator: [{name: x, files: [large.bin]}]")


def test_a_kustomization_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"cannot be checked: kustomization\.yaml: line 1"):
        checked(tmp_path, "a: b: c")
    with pytest.raises(LoadError, match="is over the limit"):
        checked(tmp_path, "#" * (MAX_KUSTOMIZATION + 1))
    path = kustomization_file(tmp_path / "tree" / "base")
    assert path is not None
    assert read_kustomization(path) == {"resources": ["map.yaml"]}
    assert kustomization_file(tmp_path) is None


def test_links_to_folders_or_out_of_the_source_are_refused_in_charts(tmp_path: Path) -> None:
    chart = tmp_path / "tree" / "chart"
    write_tree(tmp_path, {**SOUND, "tree/chart/templates/x.yaml": ""})
    (chart / "inside").symlink_to("../base/map.yaml")
    check_links(chart, tmp_path / "tree")
    (chart / "folder").symlink_to("../base")
    with pytest.raises(LoadError, match="folder is a link to a folder; put a copy in its place"):
        check_links(chart, tmp_path / "tree")
    (chart / "folder").unlink()
    (chart / "templates" / "leak").symlink_to(tmp_path / "outside" / "secret")
    with pytest.raises(LoadError, match="templates/leak is a link that leads out of the source"):
        check_links(chart, tmp_path / "tree")


def test_real_paths_are_resolved_as_by_the_system(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "a" / "file").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "c")
    (tmp_path / "c" / "back").symlink_to("../a/b")
    (tmp_path / "c" / "loop").symlink_to("loop")
    (tmp_path / "c" / "gone").symlink_to("../nothing/here")
    names = ["a", "b", "c", "file", "link", "back", "loop", "gone", "absent", "..", ".", ""]
    paths = RealPaths()
    for chosen in itertools.product(names, repeat=3):
        path = f"{tmp_path}/{'/'.join(chosen)}"
        assert paths.of(path) == os.path.realpath(path), path
    assert paths.of("/") == "/"
    assert paths.is_inside(tmp_path / "a" / "b", tmp_path / "a")
    assert not paths.is_inside(tmp_path / "a" / "link", tmp_path / "a")
    assert paths.of("/../..") == "/"
