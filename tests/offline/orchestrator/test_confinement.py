"""The confinement of Applications to their namespace."""

from pathlib import Path

from tests.offline.support import built, write_tree
from tests.packages.support.charts import chart
from wharfinger.offline.store.kinds import APPLICATION
from wharfinger.runtime.fixpoint.model import Id

SHOP = Id(APPLICATION, "apps", "shop")
APP = (
    "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: apps}\n"
    "spec: {packageName: web, packageVersion: 1.0.0}\n"
)
OUTSIDE = {
    "templates/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\n",
    "templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: other}\n",
}
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps, labels: {wharfinger.dev/cluster-scope: allowed}}\n"


async def test_an_application_with_objects_outside_of_its_namespace_fails_unless_allowed(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    chart(packages / "web", "web", "1.0.0", OUTSIDE)
    tree = write_tree(tmp_path / "tree", {"app.yaml": APP})
    result = await built(tree, tmp_path, packages=packages)
    message = result.failed[SHOP].message
    assert "ConfigMap other/far, ClusterRole all (cluster-scoped) are outside of the namespace apps" in message
    assert "kubectl label namespace apps" in message
    assert SHOP not in result.manifests
    write_tree(tree, {"namespace.yaml": NAMESPACE})
    assert not (await built(tree, tmp_path, packages=packages)).failed
