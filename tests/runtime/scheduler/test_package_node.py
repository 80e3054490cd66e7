"""The scheduler's node of a package: its default decision, and its order."""

from pathlib import Path

from tests.packages.support.charts import write
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.runtime.resources.identity import AppId, ModuleId
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.scheduler.graph import Verdict
from wharfinger.runtime.scheduler.package_node import GLOBAL_ORDER, node_of


def package(folder: Path) -> Definition:
    text = "{requirements: {modules: {dns: '>1'}}}"
    return read_definition(write(folder, {"package.yaml": text}), name="web", version="1.0.0")


def test_a_module_is_off_unless_enabled(tmp_path: Path) -> None:
    definition = package(tmp_path)
    node = node_of(ModuleId("web"), definition, Directives())
    assert (node.name, node.version, node.order) == ("web", "1.0.0", definition.weight)
    assert node.floor is Verdict.DISABLE
    assert "dns" in {each.name for each in node.requirements.mandatory}
    assert node_of(ModuleId("web"), package(tmp_path), Directives(default=True)).floor is Verdict.ENABLE
    assert node_of(ModuleId("web"), package(tmp_path), Directives(default=False)).declined
    assert node_of(AppId("prod", "web"), package(tmp_path), Directives()).floor is Verdict.ENABLE


def test_the_module_of_global_hooks_comes_first(tmp_path: Path) -> None:
    assert node_of(ModuleId("global"), package(tmp_path), Directives()).order == GLOBAL_ORDER
