"""The inputs of a render (settings, values, platform), and the changes to rendered objects, without a cluster."""

from pathlib import Path

from tests.packages.support.charts import chart
from wharfinger.packages.registry.address import parse_repository
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.packages.settings.values import RenderContext
from wharfinger.packages.sources.source import FolderSource, RegistrySource
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.manifests import (
    UNMANAGED_LABEL,
    PackageValues,
    Platform,
    chart_request,
    global_values,
    installed_definition,
    registry_address,
    with_overrides,
)
from wharfinger.runtime.resources.resources import NO_RECONCILIATION, Directives

MANIFEST = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"


def test_a_render_request_has_all_inputs(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web")
    definition = installed_definition(folder, AppId("prod", "shop"), package="web", version="1.2.3", static=None)
    context = RenderContext("shop", "prod", "registry.example.com", "1.2.3", "sha256:1")
    values = PackageValues({}, {"a": 1}, {"b": 2})
    request = chart_request(
        definition, folder, context, values, Platform("v1.34.0", ("v1",)), upgrade=True, confined=True
    )
    assert (request.chart, request.chart_digest, request.release, request.namespace) == (
        folder,
        "sha256:1",
        "shop",
        "prod",
    )
    assert request.values == {"a": 1}  # for a plain chart, Helm itself merges the chart's values
    assert (request.is_upgrade, request.confined, request.kube_version) == (True, True, "v1.34.0")


def test_maintenance_marks_every_object() -> None:
    rendered = Rendered((), (), ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},), MANIFEST)
    assert with_overrides(rendered, Directives()) == (rendered, ())
    (obj,) = with_overrides(rendered, Directives(maintenance=NO_RECONCILIATION))[0].objects
    assert obj["metadata"] == {"name": "x", "labels": {UNMANAGED_LABEL: ""}}


def test_global_values_list_enabled_modules_and_resources() -> None:
    modules = {"a": ("x/v1/B", "x/v1/A"), "b": (), "c": None}
    assert global_values("v1.34.0", modules, {"own": 1}) == {
        "discovery": {"kubernetesVersion": "v1.34.0", "customResources": ["x/v1/A", "x/v1/B"]},
        "modules": {},
        "own": 1,
        "enabledModules": ["a", "b", "c", "a-crd"],
    }


def test_registry_addresses_are_written_for_each_source() -> None:
    address = parse_repository("registry.example.com/packages")
    assert registry_address(RegistrySource(address)) == "registry.example.com/packages"
    assert registry_address(FolderSource(Path("/p"))) == "folder:/p"
    assert registry_address(None) == ""
