"""Helpers for tests of plans: they create resources and packages as plain values, and as files."""

from collections.abc import Iterable
from pathlib import Path

import trio

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.yaml.writer import write_yaml, write_yaml_all
from wharfinger.packages.definition.definition import DEFAULT_WEIGHT, Definition, Layout
from wharfinger.packages.definition.requirements import DependsOn
from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.runtime.plan.input import Inputs, Wanted
from wharfinger.runtime.plan.plan import Plan, make_plan
from wharfinger.runtime.resources.identity import package_id
from wharfinger.runtime.resources.resources import Directives, PackageSpec
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.rules import Facts

API = "wharfinger.dev/v1alpha1"


def definition(wanted: Node) -> Definition:
    """Return the definition of a package that becomes this node once it is installed."""
    return Definition(
        layout=Layout.PACKAGE,
        type=None,
        name="package",
        version=wanted.version,
        description="",
        stage="",
        requirements=wanted.requirements,
        weight=wanted.order,
        critical=wanted.order != DEFAULT_WEIGHT,
        chart=None,
        static_values={},
        settings_schema=None,
        values_schema=None,
        helm_schema=None,
        hooks=False,
        enabled_script=wanted.script,
        crds=False,
        images={},
        subscriptions=wanted.subscriptions,
        bundles=wanted.bundles,
        exclusive_group=wanted.exclusive,
    )


def spec(
    name: str,
    *,
    package: str = "",
    version: str = "1.0.0",
    enabled: bool | None = True,
    suspended: bool = False,
    maintenance: str = "",
    depends_on: Iterable[DependsOn] = (),
) -> PackageSpec:
    """Return the specification of an Application if the name has a namespace, as ``web.shop`` does, and otherwise of a Module."""
    directives = Directives(suspended=suspended, maintenance=maintenance, depends_on=tuple(depends_on))
    return PackageSpec(
        id=package_id(name),
        generation=1,
        package=package or name.replace(".", "-"),
        version=version,
        repository="default",
        settings={},
        settings_from=(),
        status={},
        enabled=None if "." in name else enabled,
        directives=directives,
    )


class Packages:
    """A reader of packages: one package for each node, with the name that `spec` derives from the name of the node.
    Some of them take longer to read than others. A package without a node cannot be read.
    """

    def __init__(self, *nodes: Node) -> None:
        self.definitions = {each.name.replace(".", "-"): definition(each) for each in nodes}
        self.read: list[str] = []

    async def load(self, package: str, version: str) -> Definition:
        self.read.append(package)
        for _ in range(len(package) % 3 + 1):
            await trio.lowlevel.checkpoint()
        found = self.definitions.get(package)
        if found is None:
            raise ArtifactNotFoundError(f"{package} {version}: not found")
        return found


def inputs(*specs: PackageSpec) -> Inputs:
    return Inputs(
        tuple(Wanted(each, f"{each.id.name}.yaml, document 1") for each in sorted(specs, key=lambda s: s.id.name))
    )


def planned(specs: Iterable[PackageSpec], nodes: Iterable[Node], facts: Facts | None = None, limit: int = 3) -> Plan:
    """Return the plan for these resources. The definitions of their packages are derived from the nodes."""

    async def main() -> Plan:
        return await make_plan(inputs(*specs), Packages(*nodes).load, facts or Facts(), limit=limit)

    return trio.run(main)


def plan_of(*nodes: Node, facts: Facts | None = None) -> Plan:
    """Return the plan for enabled resources, one for each of the nodes."""
    return planned([spec(each.name) for each in nodes], nodes, facts)


def states(plan: Plan) -> dict[str, str]:
    return {each.name: each.state.value for each in plan.packages}


# --- files -----------------------------------------------------------------------------------------------------------------


def resource(name: str, package: str = "", version: str = "1.0.0", **fields: JsonValue) -> JsonObject:
    """Return an Application if the name has a namespace, as ``web/shop`` does, and otherwise a Module."""
    namespace, slash, instance = name.rpartition("/")
    metadata: JsonObject = {"namespace": namespace, "name": instance} if slash else {"name": name}
    return {
        "apiVersion": API,
        "kind": "Application" if slash else "Module",
        "metadata": metadata,
        "spec": {"packageName": package or instance, "packageVersion": version, **fields},
    }


def write_resources(path: Path, *documents: JsonObject) -> Path:
    path.write_text(write_yaml_all([*documents]))
    return path


def write_package(root: Path, name: str, version: str = "1.0.0", kind: str = "", **said: JsonValue) -> Path:
    """Write a package folder that contains only a ``package.yaml``."""
    folder = root / name
    folder.mkdir(parents=True)
    about: JsonObject = {"name": name, "version": version, **({"type": kind} if kind else {}), **said}
    (folder / "package.yaml").write_text(write_yaml(about))
    return folder
