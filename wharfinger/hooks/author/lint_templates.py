"""A check that renders a package with the real Helm, as for a user with the settings of ``--settings`` (default: no settings).

An error of Helm is reported at the line that the error names. A package whose schema requires settings without a default cannot
be rendered without settings. Then a warning says that nothing was rendered, and that the author can give settings with
``--settings``.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.author.lint_scope import lint_scope
from wharfinger.hooks.author.lint_sources import PACKAGE, LintFinding, Sources, finding
from wharfinger.packages.author.package_check import Severity
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.definition.module_folder import TEMPLATES_FOLDER
from wharfinger.packages.errors import RenderError
from wharfinger.packages.kustomizing.engine_kustomize import FORBIDDEN
from wharfinger.packages.kustomizing.kustomize import KubectlKustomize
from wharfinger.packages.kustomizing.manifest_renderer import ManifestRenderer
from wharfinger.packages.rendering.helm_command import KUBE_VERSION
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.renderer import RenderRequest
from wharfinger.packages.settings.values import (
    RenderContext,
    SettingsError,
    effective_settings,
    helm_values,
    merged_values,
)

NAMESPACE: Final = "lint"
_DIGEST: Final = "sha256:" + "0" * 64
_API_VERSIONS: Final = ("v1", "apps/v1", "batch/v1", "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1")


@dataclass(frozen=True, slots=True)
class Rendering:
    """The input of a rendering: the Helm program, the user's settings, and the version of Kubernetes."""

    helm: Path
    settings: JsonObject
    kube_version: str = KUBE_VERSION


async def lint_templates(sources: Sources, definition: Definition, rendering: Rendering) -> list[LintFinding]:
    """Check the templates. Raises a transient RenderError if Helm cannot be run now."""
    if definition.chart is None:
        return []
    try:
        request = _request(sources.files.root, definition, rendering)
    except SettingsError as error:
        given = "correct the settings" if rendering.settings else "give settings with --settings"
        why = f"the templates were not rendered: {error}; {given}"
        return [finding(PACKAGE, 0, Severity.WARNING, why)]
    with tempfile.TemporaryDirectory(prefix="wharfinger-lint-") as scratch:
        try:
            helm, kubectl = HelmRenderer(rendering.helm, Path(scratch)), shutil.which("kubectl")
            building = KubectlKustomize(
                Path(kubectl) if kubectl else None, Path(scratch), network=False, forbidden=FORBIDDEN
            )
            rendered = await ManifestRenderer(helm, building).render(request)
        except RenderError as error:
            if error.transient:
                raise
            return [sources.located(Severity.ERROR, str(error))]
    if not (rendered.objects or rendered.hooks):
        return list(_nothing_rendered(sources, definition))
    return lint_scope(definition, rendered, NAMESPACE)


def _nothing_rendered(sources: Sources, definition: Definition) -> list[LintFinding]:
    """Return a warning that nothing was rendered. Return nothing if the package has no templates, or has hooks.

    The templates of a package with hooks may need values that only the hooks set.
    """
    if definition.hooks or not sources.files.has_folder(TEMPLATES_FOLDER):
        return []
    return [finding(PACKAGE, 0, Severity.WARNING, "its templates render to nothing with these settings")]


def _request(tree: Path, definition: Definition, rendering: Rendering) -> RenderRequest:
    """Make the request to render. Raises SettingsError if the settings are not valid."""
    context = RenderContext(definition.name, NAMESPACE, "registry.example.com/packages", definition.version, _DIGEST)
    settings = effective_settings(definition, rendering.settings)
    values = merged_values(definition, rendering.settings)
    return RenderRequest(
        chart=tree,
        chart_digest=_DIGEST,
        release=definition.name,
        namespace=NAMESPACE,
        values=helm_values(definition, context, {}, settings, values),
        kube_version=rendering.kube_version,
        api_versions=_API_VERSIONS,
        is_upgrade=False,
        chart_file=definition.chart_file,
        manifests=definition.layout is Layout.MANIFESTS,
    )
