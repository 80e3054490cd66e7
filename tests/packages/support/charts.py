"""Small charts for tests, and the real helm binaries."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.programs import ROOT
from wharfinger.packages.charts.chart import read_chart

WEB_SERVICE = ROOT / "examples" / "web-service"
WEB_VERSION = read_chart(WEB_SERVICE).version

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.text | default "none" | quote }}
"""


def tool(name: str) -> Path:
    """Return the path of a real program. If the program is not installed, the test fails."""
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not on PATH: `make setup` brings it")
    return Path(found)


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write these files below ``folder``, and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def chart(folder: Path, name: str = "web", version: str = "1.2.3", files: dict[str, str] | None = None) -> Path:
    """Write a chart with one ConfigMap and additional files."""
    text = f"apiVersion: v2\nname: {name}\nversion: {version}\ndescription: for tests\n"
    return write(folder, {"Chart.yaml": text, "templates/config.yaml": CONFIG_MAP, **(files or {})})


def helm(program: str, *arguments: str, home: Path) -> str:
    """Run helm with its own home folder. Return its standard output, followed by its standard error. Raises RuntimeError if
    helm fails.
    """
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(tool(program)), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{program} {' '.join(arguments)}: {done.stderr}")
    return done.stdout + done.stderr


SIX_OBJECTS: Final[dict[str, str]] = {
    "Chart.yaml": "apiVersion: v2\nname: six\nversion: 1.0.0\n",
    "values.yaml": "replicas: 1\n",
    "templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: {{ .Release.Name }}}\n",
    "templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {colour: blue}\n",
    "templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\nstringData: {word: shark}\n",
    "templates/service.yaml": (
        "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\n"
        "spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}\n"
    ),
    "templates/role.yaml": (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: {{ .Release.Name }}}\n"
        'rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]\n'
    ),
    "templates/deployment.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec:\n"
        "  replicas: {{ .Values.replicas }}\n  selector: {matchLabels: {app: {{ .Release.Name }}}}\n"
        "  template:\n    metadata: {labels: {app: {{ .Release.Name }}}}\n"
        "    spec: {containers: [{name: main, image: 'registry.example/web:1'}]}\n"
    ),
}
"""The files of a chart of six objects of six kinds."""


def manifest(name: str) -> str:
    """Return the text of a ConfigMap without a namespace."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: v}}\n"
