"""The command line of Helm: its arguments, and its environment. Pure.

Two measures make a run cheaper. First, the garbage collector starts later. Most of the cost of a small render is Helm's start,
during which Go's garbage collector scans several megabytes that are all still needed. ``GOGC=400`` avoids that, which saves a
fifth of the processor time. With GOMEMLIMIT, which is below the memory limit of the run, the collector still starts in time for
a big chart. Second, there are few flags: four hundred flags ``--api-versions`` take 4 ms, but one flag with all versions takes
hardly any time.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.names import is_label, is_subdomain
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.renderer import RenderRequest

KUBE_VERSION: Final = "v1.34.0"
"""The version of Kubernetes that templates see if there is no cluster."""
MAX_API_VERSIONS: Final = 10_000
MAX_API_BYTES: Final = 512 * 1024
"""The largest size of all API versions together, in bytes; Linux accepts 2 MiB of arguments and environment."""
FLAG_BYTES: Final = 96 * 1024
"""The largest size of one flag, in bytes; Linux accepts 128 KiB in one argument."""

_KUBE_VERSION: Final = re.compile(r"v?\d{1,4}(?:\.\d{1,4}){1,2}(?:[-+][0-9A-Za-z.+-]{1,100})?\Z")
_API_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9./-]{0,300}\Z")

_GOGC: Final = 400
_NOWHERE: Final = "http://127.0.0.1:9"


def template_arguments(request: RenderRequest) -> list[str]:
    """Return the arguments after ``helm template``, except values and chart.

    Raises RenderError for invalid names and versions, because Helm could read some of them as flags.
    """
    if not is_subdomain(request.release, 53):
        raise RenderError(
            f"{request.release[:100]!r} cannot be a release name: expected at most 53 lower-case letters, digits, '-' and '.', "
            "with a letter or digit at both ends"
        )
    if not is_label(request.namespace):
        raise RenderError(f"{request.namespace[:100]!r} cannot be a namespace")
    if not _KUBE_VERSION.match(request.kube_version):
        raise RenderError(f"{request.kube_version[:100]!r} is not a valid version of Kubernetes, such as v1.37.0")
    arguments = [
        request.release,
        f"--namespace={request.namespace}",
        f"--kube-version={request.kube_version}",
        "--include-crds",
    ]
    if request.is_upgrade:
        arguments.append("--is-upgrade")
    return [*arguments, *_api_versions(request.api_versions)]


def server_arguments(kubeconfig: Path, out: Path) -> list[str]:
    """Return the arguments with which ``lookup`` can read the cluster. As far as possible, they keep Helm from reading anything
    else in the cluster.

    Helm 3 reads the cluster only for lookups, and gets the versions of Kubernetes and its APIs by arguments; Helm 4 reads these
    versions from the cluster. Helm writes the documents to files below ``out``. The end mark
    (:mod:`wharfinger.packages.rendering.end_mark`) then stops Helm before it checks each object as it does for an installation,
    because a render must not depend on whether the cluster knows an object's kind, or whether the object fits a schema.
    """
    return ["--dry-run=server", f"--kubeconfig={kubeconfig}", f"--output-dir={out}", "--debug"]


def helm_environment(work: Path, memory_bytes: int, kubeconfig: JsonObject | None = None) -> dict[str, str]:
    """Return all environment variables of a run in the folder ``work``; no variables are inherited.

    The variables name a proxy address at which nothing listens. So Helm cannot use the network, except for the cluster of
    ``kubeconfig``.
    """
    environment = {
        "PATH": os.defpath,
        "HOME": str(work),
        "TMPDIR": str(work),
        "HELM_CACHE_HOME": str(work / "cache"),
        "HELM_CONFIG_HOME": str(work / "config"),
        "HELM_DATA_HOME": str(work / "data"),
        "HELM_PLUGINS": str(work / "plugins"),
        "KUBECONFIG": os.devnull,
        "HTTP_PROXY": _NOWHERE,
        "HTTPS_PROXY": _NOWHERE,
        "LC_ALL": "C.UTF-8",
        "GOTRACEBACK": "none",  # a megabyte of stack traces would displace the first line, which has the reason
        "GOGC": str(_GOGC),
        "GOMEMLIMIT": str(memory_bytes // 2),  # near this limit, the garbage collector runs more often
    }
    server = find(kubeconfig, "clusters", 0, "cluster", "server")
    host = urlsplit(server).hostname if isinstance(server, str) else None
    return environment | ({"NO_PROXY": host} if host else {})


def _api_versions(versions: tuple[str, ...]) -> Iterator[str]:
    """Yield the flags ``--api-versions``, each with as many versions as fit into FLAG_BYTES. Raises RenderError."""
    known = sorted(set(versions))
    for version in known:
        if not _API_VERSION.match(version):
            raise RenderError(f"{version[:100]!r} is not a valid API version, such as apps/v1 or apps/v1/Deployment")
    if len(known) > MAX_API_VERSIONS or sum(map(len, known)) + len(known) > MAX_API_BYTES:
        raise RenderError(f"{len(known)} API versions are more than helm accepts; leave out those of unused CRDs")
    flag: list[str] = []
    room = FLAG_BYTES
    for version in known:
        room -= len(version) + 1
        if room < 0:
            yield f"--api-versions={','.join(flag)}"
            flag, room = [], FLAG_BYTES - len(version) - 1
        flag.append(version)
    if flag:
        yield f"--api-versions={','.join(flag)}"
