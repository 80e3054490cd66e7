"""The folder of global hooks, read as a package."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.definition.definition import Layout
from wharfinger.packages.definition.global_folder import read_global_definition
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.errors import ArtifactError


def test_a_global_folder_with_schemas_is_read(tmp_path: Path) -> None:
    settings = "type: object\nproperties: {domain: {type: string, default: local}}\n"
    values = "x-extend: {schema: config-values.yaml}\nproperties: {found: {type: integer}}\n"
    write(tmp_path, {"hooks/a.sh": "", "openapi/config-values.yaml": settings, "openapi/values.yaml": values})
    definition = read_global_definition(tmp_path, version="1.0.0")
    assert (definition.name, definition.camel, definition.version) == ("global", "global", "1.0.0")
    assert (definition.layout, definition.type, definition.hooks) == (Layout.MODULE_FOLDER, PackageType.MODULE, True)
    assert (definition.chart, definition.static_values, definition.enabled_script) == (None, {}, False)
    assert definition.settings_schema is not None
    assert definition.settings_schema.defaulted({}) == {"domain": "local"}
    assert [str(each) for each in definition.settings_schema.problems({"found": 1})]
    assert definition.values_schema is not None
    assert definition.values_schema.problems({"domain": "a", "found": 1}) == ()


def test_an_empty_global_folder_has_no_schemas(tmp_path: Path) -> None:
    definition = read_global_definition(tmp_path, version="")
    assert (definition.settings_schema, definition.values_schema, definition.helm_schema) == (None, None, None)


def test_missing_and_invalid_global_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="its folder is missing"):
        read_global_definition(tmp_path / "none", version="")
    write(tmp_path, {"openapi/values.yaml": "type: [a"})
    with pytest.raises(ArtifactError, match=r"^openapi/values\.yaml: line 2"):
        read_global_definition(tmp_path, version="")
