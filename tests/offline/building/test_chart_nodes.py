"""The search for charts that may make nodes (objects that have a controller)."""

from pathlib import Path

import pytest

from tests.offline.support import CHART, write_tree
from wharfinger.offline.building import chart_nodes
from wharfinger.offline.building.chart_nodes import may_make_nodes, names_nodes

FLUX = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"
ARGO = "apiVersion: argoproj.io/v1alpha1\nkind: Application\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, False),
        ({"README.md": FLUX, "values.yaml": FLUX, "crds/a.yaml": FLUX}, False),
        ({"templates/deep/a.yaml": FLUX}, True),
        ({"templates/_helpers.tpl": ARGO}, True),
        ({"templates/a.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\n"}, True),
        ({"charts/sub/templates/a.yaml": "apiVersion: wharfinger.dev/v1alpha1\n"}, True),
        ({"charts/sub/templates/a.yaml": "apiVersion: v1\n", "charts/README.md": FLUX}, False),
        ({"charts/sub/charts/deep/templates/a.yaml": FLUX}, True),
        ({"charts/sub-1.0.0.tgz": "packed"}, True),
    ],
)
def test_templates_that_may_make_nodes_are_found(tmp_path: Path, files: dict[str, str], found: bool) -> None:
    assert may_make_nodes(write_tree(tmp_path, {**CHART, **files})) is found


def test_a_template_that_is_too_large_may_make_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_nodes, "MAX_TEMPLATE", 10)
    assert may_make_nodes(write_tree(tmp_path, CHART))


def test_values_that_contain_objects_are_found() -> None:
    assert names_nodes({"raw": [{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"}]})
    assert names_nodes(["text", ARGO])
    assert not names_nodes({"raw": [{"apiVersion": "apps/v1", "kind": "Deployment"}]})
