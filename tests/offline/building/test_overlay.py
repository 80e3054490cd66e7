"""The overlay for a Flux Kustomization, as Flux itself makes it."""

from pathlib import Path

from tests.offline.support import config_map, write_tree
from wharfinger.offline.building.overlay import (
    has_kustomization,
    overlay_of,
    resources_of,
)


def test_a_folder_without_a_kustomization_lists_its_manifests(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "b.yaml": config_map("b"),
            "a/x.yaml": config_map("x"),
            "kustomized/kustomization.yaml": "resources: []\n",
            "kustomized/hidden.yaml": config_map("h"),
            "kustomized/deep/kustomization.yaml": "resources: []\n",
        },
    )
    assert not has_kustomization(tmp_path)
    assert resources_of(tmp_path, ".") == ["a/x.yaml", "b.yaml", "kustomized"]
    assert resources_of(tmp_path, "kustomized") == ["."]


def test_fields_of_a_spec_become_kustomization_fields() -> None:
    assert overlay_of({"path": "x"}) == {}
    made = overlay_of(
        {
            "targetNamespace": "apps",
            "namePrefix": "p-",
            "nameSuffix": "-s",
            "images": [{"name": "a", "newTag": "1"}],
            "patches": [{"patch": "x"}],
            "components": ["../c"],
            "commonMetadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "patchesStrategicMerge": [{"kind": "A"}],
            "patchesJson6902": [{"target": {"kind": "B"}, "patch": [{"op": "remove", "path": "/x"}]}],
        }
    )
    assert made["namespace"] == "apps"
    assert made["labels"] == [{"pairs": {"a": "b"}, "includeSelectors": False, "includeTemplates": False}]
    assert made["patches"] == [
        {"patch": "x"},
        {"patch": "kind: A\n"},
        {"target": {"kind": "B"}, "patch": "- op: remove\n  path: /x\n"},
    ]


def test_ignored_and_json_files_are_not_listed(tmp_path: Path) -> None:
    write_tree(tmp_path, {".sourceignore": "apps/no.yaml\n", "apps/no.yaml": "", "apps/board.json": "{}"})
    write_tree(tmp_path, {"apps/yes.yml": config_map("x")})
    assert resources_of(tmp_path, "apps") == ["yes.yml"]
