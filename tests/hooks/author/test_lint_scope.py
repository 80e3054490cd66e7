"""The check that finds objects outside of the namespace in the chart of a package for Applications."""

from pathlib import Path

import pytest

from tests.hooks.support.linting import PACKAGE, lint, package

PAGE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page%s}\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: readers}\n"
MANY = "---\n".join(ROLE.replace("readers", f"readers-{number}") for number in range(7))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("template", "named"),
    [
        (PAGE % "", ""),
        (PAGE % ", namespace: {{ .Release.Namespace }}", ""),
        (PAGE % ", namespace: kube-system", "ConfigMap kube-system/page"),
        (ROLE, "ClusterRole readers"),
        (
            ROLE.replace("{name: readers}", '{name: readers, annotations: {"helm.sh/hook": pre-install}}'),
            "ClusterRole readers",
        ),
        (
            PAGE % ""
            + "---\n"
            + ROLE.replace("{name: readers}", '{name: readers, annotations: {"helm.sh/hook": test}}'),
            "",
        ),
        (
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: made}}\n",
            "Namespace made",
        ),
        (MANY, "readers-4 and 2 more"),
    ],
)
def test_cluster_scoped_objects_of_an_application_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], template: str, named: str
) -> None:
    code, told = lint(capsys, package(tmp_path, {"templates/a.yaml": template}))
    assert code == 0
    assert len(told) == bool(named), told
    if named:
        assert told[0].startswith(".: warning: its chart has ")
        assert f"{named} outside of the namespace" in told[0]
        assert "wharfinger.dev/cluster-scope=allowed" in told[0]


def test_cluster_scoped_objects_of_a_module_package_are_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for type_ in ("type: Module\n", ""):
        files = {"package.yaml": PACKAGE.replace("type: Application\n", type_), "templates/a.yaml": ROLE}
        assert lint(capsys, package(tmp_path, files)) == (0, [])
