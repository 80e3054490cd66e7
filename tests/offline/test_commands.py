"""The command ``wharfinger build`` as a user runs it."""

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import ClassVar, Final

import pytest

from tests.offline.support import FLEET, cli, cli_process, config_map, kustomization, release, with_chart, write_tree
from tests.packages.rendering.test_chart_engine import engine_program
from tests.packages.support.charts import chart, tool
from tests.packages.support.web_server import Quiet, serving
from tests.programs import ROOT
from wharfinger.__main__ import main
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.packages.charts.chart import pack_chart

NEEDS_DEFINITION: Final = """\
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: a, namespace: apps}
spec:
  dependsOn:
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: a.example.com}
  resources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: defined}}
"""
FROM_REPOSITORY: Final = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: apps}
spec: {url: "%s"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec: {chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}}
"""


@pytest.mark.slow
def test_the_sample_tree_is_built_reproducibly(tmp_path: Path) -> None:
    arguments = (
        "build",
        str(FLEET / "clusters" / "production"),
        "--root",
        str(FLEET),
        "--packages",
        str(ROOT / "examples"),
    )
    one, two = (
        cli_process(*arguments, cache=tmp_path / "one"),
        cli_process(*arguments, "--concurrency=1", cache=tmp_path / "two"),
    )
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout == two.stdout
    assert len(read_yaml_all(one.stdout, what="output")) >= 60


@pytest.mark.slow
def test_a_chart_is_built_with_given_values(tmp_path: Path) -> None:
    folder = chart(
        tmp_path / "web", files={"templates/map.yaml": config_map("x").replace("{}", "") + "  a: {{ .Values.a }}\n"}
    )
    values = tmp_path / "values.yaml"
    values.write_text("a: given\n")
    done = cli_process(
        "build", str(folder), "--values", str(values), "--name=shop", "--namespace=apps", cache=tmp_path / "cache"
    )
    assert done.returncode == 0, done.stderr
    helm = subprocess.run(
        [tool("helm"), "template", "shop", folder, "--namespace=apps", f"--values={values}"],
        check=True,
        capture_output=True,
    )
    expected = [each for each in read_yaml_all(helm.stdout, what="helm") if each]
    assert sorted(map(str, read_yaml_all(done.stdout, what="ours"))) == sorted(map(str, expected))


def test_failures_are_reported_and_the_rest_is_printed(tmp_path: Path) -> None:
    files = {
        "ks.yaml": kustomization("a", "./a", depends=("missing",))
        + "---\n"
        + kustomization("b", "./a", depends=("a",)),
        "a/map.yaml": config_map("x"),
        "hr.yaml": release("web"),
    }
    tree = write_tree(tmp_path / "tree", with_chart(files))
    done = cli("build", str(tree), cache=tmp_path / "cache")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: ks.yaml:1: Kustomization flux-system/a: spec.dependsOn[0]: Kustomization flux-system/missing does not exist",
        "  blocks Kustomization flux-system/b",
        "4 objects built; 1 failed, and 1 blocked by them",
    ]
    assert "name: web-web" in done.stdout


@pytest.mark.slow
def test_output_can_be_written_to_a_folder(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": config_map("x")})
    out = tmp_path / "out"
    done = cli("build", str(tree), "--output", str(out), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.yaml")) == [
        "files-ks.yaml.yaml",
        "flux-system/kustomization-a.yaml",
    ]


def test_secrets_are_wiped_on_request(tmp_path: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: words, namespace: apps}\nstringData: {word: hidden}\n"
    tree = write_tree(tmp_path / "tree", {"secret.yaml": secret, "map.yaml": config_map("words", word="hidden")})
    plain = cli("build", str(tree), cache=tmp_path / "cache").stdout
    wiped = cli("build", str(tree), "--wipe-secrets", cache=tmp_path / "cache").stdout
    assert wiped == plain.replace("stringData:\n  word: hidden", "stringData:\n  word: ..PLACEHOLDER_word..")
    assert wiped != plain


def test_missing_crds_are_allowed_on_request(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"set.yaml": NEEDS_DEFINITION})
    arguments = ["build", str(tree), "--engine", str(engine_program())]
    refused = cli(*arguments, cache=tmp_path / "cache")
    assert refused.returncode == 1
    assert "CustomResourceDefinition a.example.com does not exist" in refused.stderr
    allowed = cli(*arguments, "--allow-missing-crds", cache=tmp_path / "cache")
    assert allowed.returncode == 0, allowed.stderr
    assert "name: defined" in allowed.stdout


class FailsAtFirst(Quiet):
    """A handler of HTTP requests that answers the first ``left`` requests with an error."""

    left: ClassVar[int]

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        if type(self).left:
            type(self).left -= 1
            self.send_error(503)
        else:
            super().do_GET()


@pytest.mark.slow
@pytest.mark.parametrize(("attempts", "failures", "code"), [("1", 100, 1), ("2", 1, 0)])
def test_a_source_with_a_transient_error_is_retried(attempts: str, failures: int, code: int, tmp_path: Path) -> None:
    served = write_tree(
        tmp_path / "served",
        {"index.yaml": "apiVersion: v1\nentries: {web: [{name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}]}\n"},
    )
    (served / "web-1.0.0.tgz").write_bytes(pack_chart(chart(tmp_path / "web", "web", "1.0.0")))
    FailsAtFirst.left = failures  # A release may be built twice, so a single failure might not fail the build.
    with serving(served, FailsAtFirst) as url:
        tree = write_tree(tmp_path / "tree", {"release.yaml": FROM_REPOSITORY % url})
        arguments = ["build", str(tree), "--attempts", attempts, "--cache-dir", str(tmp_path / "cache")]
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            assert main(arguments) == code, err.getvalue()
    assert ("text: none" in out.getvalue()) == (code == 0)
    assert ("503" in err.getvalue()) == (code == 1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["/does/not/exist"], "error: /does/not/exist: does not exist"),
        ([".", "--namespace=Wrong"], "--namespace 'Wrong': cannot be a namespace"),
        ([".", "--helm=no-such-program"], "no 'no-such-program' on PATH; install it, or name it with --helm"),
        ([".", "--kubectl=no-such-program"], "no 'no-such-program' on PATH; install it, or name it with --kubectl"),
        ([".", "--engine=no-such-program"], "--engine no-such-program: no such program"),
        ([".", "--packages=/does/not/exist"], "--packages /does/not/exist: not a folder"),
        ([".", "--values=/does/not/exist"], "--values /does/not/exist: cannot be read"),
        ([".", "--concurrency=0"], "not a number from 1"),
    ],
)
def test_invalid_arguments_are_refused(arguments: list[str], told: str, tmp_path: Path) -> None:
    done = cli("build", *arguments, cache=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_build_without_objects_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    done = cli("build", str(tmp_path / "tree"), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "0 objects built\n")
