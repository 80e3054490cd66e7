"""The kinds that an offline run knows: kinds with a controller, and kinds that are data for other objects.

The API group is part of each: a ``Bucket`` of another group is an ordinary manifest.
"""

from typing import Final

from wharfinger.offline.store.identity import kind_id

_KUSTOMIZE: Final = "kustomize.toolkit.fluxcd.io"
_HELM: Final = "helm.toolkit.fluxcd.io"
_SOURCE: Final = "source.toolkit.fluxcd.io"
_WHARFINGER: Final = "wharfinger.dev"
_FLUX_OPERATOR: Final = "fluxcd.controlplane.io"

KUSTOMIZATION: Final = kind_id(_KUSTOMIZE, "Kustomization")
HELM_RELEASE: Final = kind_id(_HELM, "HelmRelease")
GIT_REPOSITORY: Final = kind_id(_SOURCE, "GitRepository")
OCI_REPOSITORY: Final = kind_id(_SOURCE, "OCIRepository")
HELM_REPOSITORY: Final = kind_id(_SOURCE, "HelmRepository")
HELM_CHART: Final = kind_id(_SOURCE, "HelmChart")
EXTERNAL_ARTIFACT: Final = kind_id(_SOURCE, "ExternalArtifact")
ARTIFACT_GENERATOR: Final = kind_id("source.extensions.fluxcd.io", "ArtifactGenerator")
BUCKET: Final = kind_id(_SOURCE, "Bucket")
APPLICATION: Final = kind_id(_WHARFINGER, "Application")
MODULE: Final = kind_id(_WHARFINGER, "Module")
PACKAGE_REPOSITORY: Final = kind_id(_WHARFINGER, "PackageRepository")
RESOURCE_SET: Final = kind_id(_FLUX_OPERATOR, "ResourceSet")
RESOURCE_SET_INPUT_PROVIDER: Final = kind_id(_FLUX_OPERATOR, "ResourceSetInputProvider")
ARGO_APPLICATION: Final = kind_id("argoproj.io", "Application")
CRD: Final = kind_id("apiextensions.k8s.io", "CustomResourceDefinition")
CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"  # noqa: S105 - a kind
FOLDER: Final = "Folder"
"""The kind of a folder that has a ``kustomization.yaml``, but that no Flux Kustomization builds. The folder is a node of the
fixpoint engine, but no manifest in the tree declares it. The name in the node's id is the path of the folder.
"""
SELECTION: Final = "Selection"
"""The kind of an id that stands for all objects that a label selector of a ResourceSet selects. The id's name is this
selector.
"""
ENABLED_MODULES: Final = "EnabledModules"
"""The kind of the id that stands for the set of all enabled Modules."""
STANDINS: Final = frozenset({SELECTION, ENABLED_MODULES})
"""The kinds whose ids stand for several objects each. Nodes read such ids, but the store never contains them."""

SOURCES: Final = frozenset({GIT_REPOSITORY, OCI_REPOSITORY, HELM_REPOSITORY, HELM_CHART, BUCKET})
PACKAGES: Final = frozenset({APPLICATION, MODULE})
SCHEDULABLE: Final = (
    SOURCES
    | PACKAGES
    | {
        KUSTOMIZATION,
        HELM_RELEASE,
        RESOURCE_SET,
        ARTIFACT_GENERATOR,
        ARGO_APPLICATION,
        FOLDER,
    }
)
"""The kinds of the nodes of the fixpoint engine. All other objects are data, which is ready as soon as it exists."""
DATA: Final = frozenset({CONFIG_MAP, SECRET, PACKAGE_REPOSITORY, RESOURCE_SET_INPUT_PROVIDER, EXTERNAL_ARTIFACT})
"""The kinds of data that nodes usually read. Objects of another kind are stored once a node reads an object of that kind."""
