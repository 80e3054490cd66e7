"""Charts of the simulation, and a simulated renderer. Helm is a child process, and virtual time does not wait for it.

`SimulatedHelm` replaces the part that runs Helm. It fills the values, the names of the release and its namespace, and the
version into the templates, replaces `randAlphaNum` by a new text at each render, and returns what Helm would print.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import trio

from tests.packages.support.charts import chart
from wharfinger.formats.json.value import JsonObject, as_object, find, find_object
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.packages.rendering.helm_output import read_output
from wharfinger.packages.rendering.helm_renderer import ClusterAccess, RenderLimits
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest
from wharfinger.process.ledger import ProcessLedger

VERSIONS: Final = ("1.0.0", "1.1.0")
_lots = itertools.count(1)
_SPOT: Final = re.compile(r"\{\{ *([^}]+?) *\}\}")

_CONFIG: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {text: "{{ .Values.text }}", version: "{{ .Chart.Version }}"}
"""
_WORKLOAD: Final = """\
apiVersion: apps/v1
kind: %s
metadata:
  name: "{{ .Release.Name }}"
  annotations: {wharfinger.dev/observed-after: "1.5", wharfinger.dev/ready-after: "4"}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}, annotations: {text: "{{ .Values.text }}"}}
    spec: {containers: [{name: main, image: "registry.example/web:{{ .Chart.Version }}"}]}
"""
_SERVICE: Final = """\
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {selector: {app: "{{ .Release.Name }}"}, ports: [{port: 80}]}
"""
_AUTOSCALER: Final = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: "{{ .Release.Name }}"}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "{{ .Release.Name }}"}
  minReplicas: 1
  maxReplicas: 9
"""
_ROLES: Final = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Namespace }}-{{ .Release.Name }}"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "{{ .Release.Namespace }}-{{ .Release.Name }}"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{{ .Release.Namespace }}-{{ .Release.Name }}"}
subjects: [{kind: ServiceAccount, name: default, namespace: "{{ .Release.Namespace }}"}]
"""
_DRAWN: Final = """\
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}"}
stringData: {password: "{{ randAlphaNum 12 }}"}
"""
_HOOK: Final = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-prepare"
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}}
"""

CHARTS: Final[Mapping[str, Mapping[str, str]]] = {
    "web": {"deployment.yaml": _WORKLOAD % "Deployment", "service.yaml": _SERVICE, "autoscaler.yaml": _AUTOSCALER},
    "wide": {"roles.yaml": _ROLES, "hook.yaml": _HOOK},
    "drawn": {"secret.yaml": _DRAWN, "set.yaml": _WORKLOAD % "StatefulSet", "service.yaml": _SERVICE},
}
SCALED: Final[Mapping[str, tuple[str, str]]] = {
    "web": ("Deployment", "deployments"),
    "drawn": ("StatefulSet", "statefulsets"),
}
"""Charts that contain a workload, and do not set its replicas."""


def make_charts(folder: Path) -> dict[str, Path]:
    """Write one folder of packages for each version."""
    made: dict[str, Path] = {}
    for version in VERSIONS:
        made[version] = folder / version
        for name, templates in CHARTS.items():
            files = {f"templates/{path}": text for path, text in {"config.yaml": _CONFIG, **templates}.items()}
            chart(made[version] / name, name, version, {**files, "values.yaml": "text: none\n"})
    return made


class SimulatedHelm:
    """A renderer that replaces `HelmRenderer` and runs no process."""

    def __init__(
        self,
        helm: Path,
        scratch: Path,
        ledger: ProcessLedger | None = None,
        limits: RenderLimits | None = None,
        access: ClusterAccess | None = None,
        engine: ChartEngine | None = None,
    ) -> None:
        """Accept the parameters of the real renderer, and ignore them."""

    async def identity(self, request: RenderRequest) -> str | None:
        """Return a constant identity."""
        await trio.lowlevel.checkpoint()
        return "simulated"

    async def render(self, request: RenderRequest) -> Rendered:
        """Render one chart."""
        await trio.lowlevel.checkpoint()
        about = as_object(read_yaml((request.chart / "Chart.yaml").read_bytes(), what="Chart.yaml"), "Chart.yaml")
        values = as_object(read_yaml((request.chart / "values.yaml").read_bytes(), what="values.yaml"), "values.yaml")
        known: JsonObject = {
            "Release": {"Name": request.release, "Namespace": request.namespace},
            "Values": {**values, **find_object({"values": request.values}, "values")},
            "Chart": {"Version": about["version"]},
        }
        printed = []
        for path in sorted((request.chart / "templates").glob("*.yaml")):
            source = f"---\n# Source: chart/templates/{path.name}\n"
            printed += [source + _SPOT.sub(_filled(known), text) for text in path.read_text().split("---\n")]
        return read_output("".join(printed))


def _filled(known: JsonObject) -> Callable[[re.Match[str]], str]:
    def fill(spot: re.Match[str]) -> str:
        if spot[1].startswith("randAlphaNum"):
            return f"drawn{next(_lots):07}"
        return str(find(known, *spot[1].removeprefix(".").split(".")))

    return fill
