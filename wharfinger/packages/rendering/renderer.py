"""The interface of rendering.

Implementations: :mod:`wharfinger.packages.rendering.helm_renderer` (the real ``helm template``);
:mod:`wharfinger.packages.kustomizing.manifest_renderer`, which wraps it and renders packages without a chart; and
:mod:`wharfinger.packages.rendering.render_cache`, which wraps one of them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from wharfinger.formats.json.value import JsonObject, find

HOOK_ANNOTATION: Final = "helm.sh/hook"
TEST_EVENTS: Final = frozenset({"test", "test-success"})
"""The events of tests; ``test-success`` is Helm 2's name, which Helm still accepts."""


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """All inputs of a render. Only the render of a chart that reads from the cluster (``lookup``) also depends on the objects
    there.

    ``chart`` is a folder with a ``Chart.yaml``. With ``chart_file``, it is the folder of a package, and ``chart_file`` is the
    content of its ``Chart.yaml``. From a package, Helm gets only the chart, without hooks, schemas and CRDs, and without its
    ``values.yaml``, which is already merged into ``values``. ``chart_digest`` identifies the content of the folder; "" if it is
    unknown.
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
    confined: bool = False
    """True if lookups may read only the release's namespace. It has no effect on a chart without lookups."""
    manifests: bool = False
    """True if ``chart`` is a folder of manifests or a kustomization. Neither has templates or values."""
    reader: str = ""
    """The Kubernetes user whose permissions apply to lookups; if empty, the daemon's own permissions apply. It has no effect on a
    chart without lookups.
    """


@dataclass(frozen=True, slots=True)
class Rendered:
    """The result of a render: CRDs of ``crds/``, hook objects (``helm.sh/hook``), all other objects, each in Helm's order.

    Tests are hooks, too: Helm stores them in the release record with the other hooks, and runs them only on request.
    """

    crds: tuple[JsonObject, ...]
    hooks: tuple[JsonObject, ...]
    objects: tuple[JsonObject, ...]
    manifest: str
    """The text of ``objects`` as Helm would store it in a release record."""
    notes: str = ""
    """The text of the chart's own ``templates/NOTES.txt``, rendered, as Helm would store it."""
    looked: bool = False
    """True if the chart may have read from the cluster, so that the same request may have another result next time."""

    @property
    def tests(self) -> tuple[JsonObject, ...]:
        """The hooks that are only tests of the release (``helm test``)."""
        return tuple(hook for hook in self.hooks if is_test(hook))


def hook_events(obj: JsonObject) -> tuple[str, ...]:
    """Return the events at which Helm would run an object: ``pre-install``, ``test`` and so on; () if it is not a hook."""
    said = find(obj, "metadata", "annotations", HOOK_ANNOTATION)
    events = (event.strip() for event in said.split(",")) if isinstance(said, str) else ()
    return tuple(event for event in events if event)


def is_test(obj: JsonObject) -> bool:
    """Return whether Helm runs an object only for ``helm test``."""
    events = hook_events(obj)
    return bool(events) and TEST_EVENTS.issuperset(events)


class Renderer(Protocol):
    """A renderer of charts. Raises RenderError with Helm's own message, shortened."""

    async def render(self, request: RenderRequest) -> Rendered:
        """Render one chart."""
        ...


class KeyedRenderer(Renderer, Protocol):
    """A renderer that knows whether a repeated request would give the same result."""

    async def identity(self, request: RenderRequest) -> str | None:
        """Return a text that identifies the inputs of a render other than the request, such as Helm's version; None if they are
        unknown.

        Raises RenderError.
        """
        ...
