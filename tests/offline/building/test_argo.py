"""The options of a source of an Argo CD Application."""

from pathlib import Path

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.argo import (
    MAX_FILE,
    ArgoError,
    folder_filter,
    helm_values,
    kustomize_fields,
    read_text,
    tool_of,
)

FILES = {"one.yaml": "a: 1\nb: 1\n", "two.yaml": "b: 2\nc: 2\n", "word.txt": "true"}


def test_values_are_layered_in_the_order_of_argo() -> None:
    helm: JsonObject = {
        "valueFiles": ["one.yaml", "two.yaml"],
        "values": "c: lost",
        "valuesObject": {"c": 3},
        "parameters": [{"name": "d.e", "value": "4"}, {"name": "f", "value": "5", "forceString": True}],
        "fileParameters": [{"name": "g", "path": "word.txt"}],
    }
    assert helm_values(helm, FILES.get) == {"a": 1, "b": 2, "c": 3, "d": {"e": 4}, "f": "5", "g": "true"}
    assert helm_values({"values": "c: kept"}, FILES.get) == {"c": "kept"}
    assert helm_values({}, FILES.get) == {}


@pytest.mark.parametrize(
    ("helm", "says"),
    [
        ({"valueFiles": [1]}, r"valueFiles\[0\]: expected a path"),
        ({"valueFiles": ["gone"]}, r"valueFiles\[0\]: there is no file 'gone'"),
        ({"values": "["}, "values"),
        ({"fileParameters": [{"name": "a", "path": "gone"}]}, r"fileParameters\[0\]: there is no file"),
        ({"parameters": [{"name": "a", "value": "{b}"}]}, r"parameters\[0\]: lists"),
        ({"parameters": [{"name": "", "value": "b"}]}, "names no value"),
    ],
)
def test_invalid_values_are_refused(helm: JsonObject, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        helm_values(helm, FILES.get)


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("web:2", {"name": "web", "newTag": "2"}),
        ("web=host:5000/web", {"name": "web", "newName": "host:5000/web"}),
        ("web=host:5000/web:2", {"name": "web", "newName": "host:5000/web", "newTag": "2"}),
        ("web@sha256:ab", {"name": "web", "digest": "sha256:ab"}),
        ("web=other@sha256:ab", {"name": "web", "newName": "other", "digest": "sha256:ab"}),
    ],
)
def test_argo_images_are_parsed_for_kustomize(text: str, image: JsonObject) -> None:
    assert kustomize_fields({"images": [text]}, {}) == {"images": [image]}


def test_labels_are_added_to_selectors_unless_label_without_selector_is_set() -> None:
    labels: JsonObject = {"a": "b"}
    assert kustomize_fields({"commonLabels": labels}, {})["labels"] == [
        {"pairs": labels, "includeSelectors": True, "includeTemplates": True}
    ]
    assert kustomize_fields({"commonLabels": labels, "labelWithoutSelector": True}, {})["labels"] == [
        {"pairs": labels, "includeSelectors": False, "includeTemplates": False}
    ]
    assert kustomize_fields({"namespace": "x", "replicas": [{"name": "a", "count": 2}]}, {}) == {
        "namespace": "x",
        "replicas": [{"name": "a", "count": 2}],
    }


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        ({"nameSuffix": "a"}, {"nameSuffix": "b"}),
        ({"images": ["web:2"]}, {"images": [{"name": "web", "newTag": "1"}]}),
    ],
)
def test_a_field_set_by_both_application_and_folder_is_refused(asked: JsonObject, own: JsonObject) -> None:
    with pytest.raises(ArgoError, match="set it in one place"):
        kustomize_fields(asked, own)


@pytest.mark.parametrize(
    ("directory", "taken"),
    [
        ({}, {"a.yaml", "b.json"}),
        ({"recurse": True}, {"a.yaml", "b.json", "x/c.yaml", "x/y/d.yaml"}),
        ({"recurse": True, "include": "x/*"}, {"x/c.yaml", "x/y/d.yaml"}),
        ({"recurse": True, "include": "{a,?}.*", "exclude": "*.json"}, {"a.yaml"}),
        ({"recurse": True, "exclude": "*/[!c].yaml"}, {"a.yaml", "b.json", "x/c.yaml"}),
        ({"include": "[a-b].*"}, {"a.yaml", "b.json"}),
    ],
)
def test_directory_options_select_the_files_of_a_folder(directory: JsonObject, taken: set[str]) -> None:
    assert set(filter(folder_filter(directory), ("a.yaml", "b.json", "x/c.yaml", "x/y/d.yaml"))) == taken


def test_the_tool_is_configured_or_detected_from_the_folder(tmp_path: Path) -> None:
    assert tool_of({}, tmp_path) == "directory"
    (tmp_path / "kustomization.yml").write_text("")
    assert tool_of({}, tmp_path) == "kustomize"
    (tmp_path / "Chart.yaml").write_text("")
    assert tool_of({}, tmp_path) == "helm"
    assert tool_of({"directory": {}}, tmp_path) == "directory"


def test_values_files_are_read_from_the_folder_the_root_and_other_sources(tmp_path: Path) -> None:
    root, other = tmp_path / "tree", tmp_path / "other"
    (root / "base").mkdir(parents=True)
    other.mkdir()
    for path in (root / "base" / "a", root / "b", other / "c"):
        path.write_text(path.name)
    found = [read_text(root, root / "base", name, {"o": other}) for name in ("a", "../b", "/b", "$o/c", "gone")]
    assert found == ["a", "b", "b", "c", None]
    for name in ("../../other/c", "$o/../tree/b", "$p/c", "https://x.example.com/c"):
        with pytest.raises(ArgoError):
            read_text(root, root / "base", name, {"o": other})
    (root / "b").write_bytes(b"a" * (MAX_FILE + 1))
    with pytest.raises(ArgoError, match="more than"):
        read_text(root, root, "b", {})
