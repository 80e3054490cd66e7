"""A test case of the peer (the public program that spec/runtime describes) about reading a minimal package.

The tests of definitions do not cover this case.
"""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.definition.definition import Layout, read_definition
from wharfinger.packages.definition.package_file import PackageType


@pytest.mark.parametrize(
    ("text", "kind"),
    [("type: Application", PackageType.APPLICATION), ("type: Module", PackageType.MODULE)],
)
def test_a_minimal_package_has_defaults(text: str, kind: PackageType, tmp_path: Path) -> None:
    found = read_definition(write(tmp_path, {"package.yaml": text}), name="web", version="1.2.3")
    assert (found.layout, found.type, found.name, found.version) == (Layout.PACKAGE, kind, "web", "1.2.3")
    assert (found.settings_schema, found.values_schema, found.static_values) == (None, None, {})
    assert (found.hooks, found.crds, found.enabled_script) == (False, False, False)
    assert (dict(found.images), found.chart) == ({}, None)
