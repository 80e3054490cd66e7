"""The kinds that an offline run knows: kinds with a controller, and kinds that are data for other objects.

The API group is part of each: a ``Bucket`` of another group is an ordinary manifest.
"""

from typing import Final

from wharfinger.offline.store.identity import kind_id

_KUSTOMIZE: Final = "kustomize.toolkit.fluxcd.io"
_HELM: Final = "helm.toolkit.fluxcd.io"
_SOURCE: Final = "source.toolkit.fluxcd.io"
_WHARFINGER: Final = "wharfinger.dev"

KUSTOMIZATION: Final = kind_id(_KUSTOMIZE, "Kustomization")
HELM_RELEASE: Final = kind_id(_HELM, "HelmRelease")
GIT_REPOSITORY: Final = kind_id(_SOURCE, "GitRepository")
OCI_REPOSITORY: Final = kind_id(_SOURCE, "OCIRepository")
HELM_REPOSITORY: Final = kind_id(_SOURCE, "HelmRepository")
HELM_CHART: Final = kind_id(_SOURCE, "HelmChart")
BUCKET: Final = kind_id(_SOURCE, "Bucket")
APPLICATION: Final = kind_id(_WHARFINGER, "Application")
MODULE: Final = kind_id(_WHARFINGER, "Module")
PACKAGE_REPOSITORY: Final = kind_id(_WHARFINGER, "PackageRepository")
ARGO_APPLICATION: Final = kind_id("argoproj.io", "Application")
CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"  # noqa: S105 - a kind
FOLDER: Final = "Folder"
"""A folder with a ``kustomization.yaml`` that no Flux Kustomization builds; it is no object, and its name is its path."""

SOURCES: Final = frozenset({GIT_REPOSITORY, OCI_REPOSITORY, HELM_REPOSITORY, HELM_CHART, BUCKET})
PACKAGES: Final = frozenset({APPLICATION, MODULE})
SCHEDULABLE: Final = SOURCES | PACKAGES | {KUSTOMIZATION, HELM_RELEASE, ARGO_APPLICATION, FOLDER}
"""The kinds whose objects are nodes of the engine. All others are data: their existence is their readiness."""
