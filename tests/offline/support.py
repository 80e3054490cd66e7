"""Trees of manifests for tests, and builds of them with the real helm, kubectl and git."""

import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

from tests.packages.support.charts import tool
from tests.programs import ROOT, WHARFINGER
from wharfinger.__main__ import main
from wharfinger.offline.controllers.controller import RunOptions
from wharfinger.offline.orchestrator.orchestrator import Config, Orchestrator, Tools, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.toolbox import ToolOptions, open_tools
from wharfinger.packages.rendering.helm_command import KUBE_VERSION
from wharfinger.runtime.fixpoint.model import Id

FLEET = ROOT / "examples" / "fleet"
OPTIONS = RunOptions(KUBE_VERSION)

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    "values.yaml": "text: none\nreplicas: 1\n",
    "templates/map.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-web}\n"
        "data: {text: {{ .Values.text | quote }}, replicas: {{ .Values.replicas | quote }}}\n"
    ),
}


def write_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder; return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def with_chart(files: Mapping[str, str], at: str = "charts/web") -> dict[str, str]:
    """Return the files, with those of a chart added below ``at``."""
    return {**files, **{f"{at}/{name}": text for name, text in CHART.items()}}


def kustomization(name: str, path: str, more: str = "", *, depends: tuple[str, ...] = ()) -> str:
    """Return a Flux Kustomization whose source is the tree itself; ``more`` has further lines of its spec."""
    listed = "".join(f"    - name: {each}\n" for each in depends)
    return (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\n"
        f"spec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n"
        + (f"  dependsOn:\n{listed}" if depends else "")
        + more
    )


def release(name: str, more: str = "", *, chart: str = "./charts/web", depends: tuple[str, ...] = ()) -> str:
    """Return a HelmRelease of a chart in the tree; ``more`` has further lines of its spec."""
    listed = "".join(f"    - name: {each}\n" for each in depends)
    return (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"
        f"metadata: {{name: {name}, namespace: apps}}\n"
        "spec:\n  chart:\n    spec:\n"
        f"      chart: {chart}\n      sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}\n"
        + (f"  dependsOn:\n{listed}" if depends else "")
        + more
    )


def config_map(name: str, namespace: str = "apps", **data: str) -> str:
    """Return a ConfigMap."""
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata:\n{lines}"


def tool_options(folder: Path) -> ToolOptions:
    """Return the options with the real programs and a cache folder below ``folder``."""
    return ToolOptions(helm=tool("helm"), kubectl=tool("kubectl"), cache=folder / "cache", network=False)


@asynccontextmanager
async def open_test_tools(folder: Path, packages: Path | None = None) -> AsyncIterator[Tools]:
    """Open the tools with a cache below ``folder``."""
    async with open_tools(replace(tool_options(folder), packages=packages)) as tools:
        yield tools


@asynccontextmanager
async def opened(
    path: Path,
    scratch: Path,
    *,
    options: RunOptions = OPTIONS,
    packages: Path | None = None,
    concurrency: int = 4,
    root: Path | None = None,
) -> AsyncIterator[Orchestrator]:
    """Open an orchestrator of the tree at ``path``. The root of the tree is ``root``, or ``path`` if ``root`` is None."""
    async with (
        open_test_tools(scratch, packages) as tools,
        open_orchestrator(Config(path, options, root=root or path, concurrency=concurrency), tools) as orchestrator,
    ):
        yield orchestrator


async def built(
    path: Path,
    scratch: Path,
    *,
    options: RunOptions = OPTIONS,
    packages: Path | None = None,
    concurrency: int = 4,
    root: Path | None = None,
) -> Result:
    """Build the tree at ``path``. The root of the tree is ``root``, or ``path`` if ``root`` is None."""
    async with opened(
        path, scratch, options=options, packages=packages, concurrency=concurrency, root=root
    ) as orchestrator:
        return await orchestrator.render()


def names(result: Result, kind: str = "ConfigMap") -> list[str]:
    """Return the names of all objects of a kind."""
    return [each.id.name for each in result.objects if each.id.kind == kind]


def failures(result: Result) -> dict[str, str]:
    """Return the message of each primary failure, by kind and name."""
    return {
        f"{who.kind.partition('.')[0]} {who.name}": str(each) for who, each in result.failed.items() if each.is_primary
    }


def flux_id(kind: str, name: str, namespace: str = "flux-system") -> Id:
    """Return the id of a Flux object."""
    groups = {"Kustomization": "kustomize", "HelmRelease": "helm"}
    return Id(f"{kind}.{groups.get(kind, 'source')}.toolkit.fluxcd.io", namespace, name)


def cli(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of wharfinger to its end in this process, because a start of a process takes longer than most commands."""
    command = [*arguments, "--cache-dir", str(cache), "--offline"]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        try:
            code = main(command)
        except SystemExit as wrong_usage:
            code = int(str(wrong_usage.code))
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def cli_process(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of wharfinger to its end in a new process, as a user does."""
    return subprocess.run(
        [*WHARFINGER, *arguments, "--cache-dir", str(cache), "--offline"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
