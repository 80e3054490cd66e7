"""The metadata of a package that a push writes into the registry together with the package."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.formats.json.value import JsonObject, decode_json
from wharfinger.packages.registry.published_facts import published_facts
from wharfinger.packages.registry.pusher import pack_package

NEEDS = "type: Application\nname: web\nversion: 1.2.0\nrequirements: {kubernetes: '>=1.30'}\n"


@pytest.mark.parametrize(
    ("files", "facts"),
    [
        ({}, {}),
        ({"package.yaml": "name: web\n"}, {}),
        ({"package.yaml": NEEDS}, {"requirements": {"kubernetes": ">=1.30"}}),
        ({"changelog.yaml": "features: [one]\nfixes: [two]\n"}, {"changelog": {"features": ["one"], "fixes": ["two"]}}),
        ({"changelog.yml": "v1.2.0: [this]\nv1.1.0: [that]\n"}, {"changelog": ["this"]}),
        ({"changelog.yaml": "- one\n- two\n"}, {"changelog": ["one", "two"]}),
        ({"changelog.yaml": "{broken"}, {}),
        ({"changelog.yaml": "- " + "x" * 70_000 + "\n"}, {}),
    ],
)
def test_published_facts_are_requirements_and_changelog(
    tmp_path: Path, files: dict[str, str], facts: JsonObject
) -> None:
    write(tmp_path, files)
    assert published_facts(tmp_path, "1.2.0") == facts


def test_published_facts_are_in_the_configuration_of_a_pushed_package(tmp_path: Path) -> None:
    write(tmp_path / "web", {"package.yaml": NEEDS, "changelog.yaml": "- one\n", "templates/a.yaml": ""})
    config = decode_json(pack_package(tmp_path / "web").config.data, max_bytes=10_000, what="config")
    assert isinstance(config, dict)
    assert config["requirements"] == {"kubernetes": ">=1.30"}
    assert config["changelog"] == ["one"]
