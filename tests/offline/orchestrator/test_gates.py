"""Requirements of packages. Offline builds check them with the same gates as the daemon."""

from pathlib import Path

from tests.offline.support import built, write_tree
from wharfinger.offline.store.kinds import APPLICATION, MODULE
from wharfinger.runtime.fixpoint.model import Id

PACKAGE = "apiVersion: v1alpha1\nname: {name}\ntype: {type}\nversion: 1.0.0\n{more}"


def resource(kind: str, name: str, package: str) -> str:
    namespace = ", namespace: apps" if kind == "Application" else ""
    return (
        f"apiVersion: wharfinger.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}{namespace}}}\n"
        f"spec: {{packageName: {package}, packageVersion: 1.0.0}}\n"
    )


def package(name: str, kind: str, needs: str = "") -> dict[str, str]:
    more = f"requirements:\n  modules:\n    mandatory: [{{name: {needs}}}]\n" if needs else ""
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
    return {
        f"{name}/package.yaml": PACKAGE.format(name=name, type=kind, more=more),
        f"{name}/Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n",
        f"{name}/templates/map.yaml": manifest,
    }


async def test_a_package_with_a_missing_requirement_fails(tmp_path: Path) -> None:
    packages = write_tree(tmp_path / "packages", package("shop", "Application", "ingress"))
    tree = write_tree(tmp_path / "tree", {"app.yaml": resource("Application", "shop", "shop")})
    result = await built(tree, tmp_path, packages=packages)
    who = Id(APPLICATION, "apps", "shop")
    assert "ingress" in result.failed[who].message
    assert result.failed[who].is_primary
    assert str(result.failed[who].place) == "app.yaml:1"
    assert who not in result.manifests


async def test_a_package_with_an_existing_requirement_is_built(tmp_path: Path) -> None:
    files = {**package("shop", "Application", "ingress"), **package("ingress", "Module")}
    packages = write_tree(tmp_path / "packages", files)
    resources = {
        "app.yaml": resource("Application", "shop", "shop"),
        "module.yaml": resource("Module", "ingress", "ingress"),
    }
    result = await built(write_tree(tmp_path / "tree", resources), tmp_path, packages=packages)
    assert not result.failed
    assert {who.kind for who in result.manifests if who.kind in {APPLICATION, MODULE}} == {APPLICATION, MODULE}


async def test_a_package_with_a_failed_requirement_is_blocked_by_it(tmp_path: Path) -> None:
    packages = write_tree(tmp_path / "packages", package("shop", "Application", "ingress"))
    resources = {
        "app.yaml": resource("Application", "shop", "shop"),
        "module.yaml": resource("Module", "ingress", "ingress"),
    }
    result = await built(write_tree(tmp_path / "tree", resources), tmp_path, packages=packages)
    assert result.blocked == {Id(APPLICATION, "apps", "shop"): (Id(MODULE, "", "ingress"),)}
