"""Charts that are rendered beforehand, so that tests in virtual time start no processes."""

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.corpus.charts import Version, unpack
from tests.packages.support.charts import tool
from wharfinger.packages.rendering.helm_output import read_output
from wharfinger.packages.rendering.renderer import Rendered

KUBE_VERSION = "v1.36.2"
API_VERSIONS = ("gauges.example/v1/Gauge", "watch.example/v1/Watcher")
"""Additional API versions for helm, as if the CRDs of the charts were installed."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A rendered version of a chart, to be installed as the release ``release`` in the namespace with the same name."""

    version: Version
    rendered: Rendered
    release: str


Charts: TypeAlias = Callable[[str], tuple[Prepared, Prepared]]
"""A function that returns both versions of a chart by its name. They are rendered once in a session."""


def keep(folder: Path) -> Charts:
    """Return a function that renders both versions of a chart below ``folder`` at its first call for this chart."""
    kept: dict[str, tuple[Prepared, Prepared]] = {}

    def get(name: str) -> tuple[Prepared, Prepared]:
        if name not in kept:
            first, second = (_prepare(version) for version in unpack(name, folder))
            kept[name] = first, second
        return kept[name]

    return get


def _prepare(version: Version) -> Prepared:
    output = version.folder.parent / f"{version.number}-rendered.yaml"
    output.write_text(_template(version, API_VERSIONS))
    return Prepared(version, read_output(output.read_text()), version.chart)


def _template(version: Version, api_versions: Iterable[str]) -> str:
    arguments = [
        version.chart,
        str(version.folder),
        f"--values={version.values_file}",
        f"--namespace={version.chart}",
        f"--kube-version={KUBE_VERSION}",
        "--include-crds",
        *(f"--api-versions={one}" for one in api_versions),
        *(["--is-upgrade"] if version.number > 1 else []),
    ]
    environment = {"HOME": str(version.folder.parent), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(tool("helm")), "template", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
