"""The seam to rendering. Implementation: :mod:`wharfinger.packages.helm_renderer` (the real ``helm template``)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wharfinger.formats.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What a render depends on, all of it: the same request gives the same manifests.

    ``chart`` is a folder with a ``Chart.yaml``; or, where ``chart_file`` is what that file should say, a package: Helm then sees
    its chart alone, without hooks, schemas and CRDs, and without its ``values.yaml``, which ``values`` have in them already.
    """

    chart: Path
    chart_digest: str
    release: str
    namespace: str
    values: JsonObject
    kube_version: str
    api_versions: tuple[str, ...]
    is_upgrade: bool
    chart_file: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a chart renders to: CRDs of ``crds/``, hook objects (``helm.sh/hook``), all else, each in Helm's order."""

    crds: tuple[JsonObject, ...]
    hooks: tuple[JsonObject, ...]
    objects: tuple[JsonObject, ...]
    manifest: str
    """The text of ``objects`` as Helm would store it in a release record."""


class Renderer(Protocol):
    """Renders charts. Raises RenderError with Helm's own words, shortened."""

    async def render(self, request: RenderRequest) -> Rendered:
        """Render one chart."""
        ...
