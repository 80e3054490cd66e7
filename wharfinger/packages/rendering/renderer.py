"""The seam to rendering.

Implementations: :mod:`wharfinger.packages.rendering.helm_renderer` (the real ``helm template``), and over it
:mod:`wharfinger.packages.rendering.render_cache`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from wharfinger.formats.json.value import JsonObject, find

HOOK_ANNOTATION: Final = "helm.sh/hook"
TEST_EVENTS: Final = frozenset({"test", "test-success"})
"""``test-success`` is what Helm 2 called it, and Helm still takes."""


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What a render depends on, all of it: the same request gives the same manifests.

    ``chart`` is a folder with a ``Chart.yaml``; or, where ``chart_file`` is what that file should say, a package: Helm then sees
    its chart alone, without hooks, schemas and CRDs, and without its ``values.yaml``, which ``values`` have in them already.
    ``chart_digest`` says what is in the folder; "" where nobody knows.

    One exception: a chart that looks into the cluster (``lookup``) also depends on what is there.
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
    """A look into the cluster reaches the release's namespace only; of no matter for a chart that does not look."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a chart renders to: CRDs of ``crds/``, hook objects (``helm.sh/hook``), all else, each in Helm's order.

    Tests are hooks, too: Helm keeps them in the release record with the others, and runs them only when it is asked to.
    """

    crds: tuple[JsonObject, ...]
    hooks: tuple[JsonObject, ...]
    objects: tuple[JsonObject, ...]
    manifest: str
    """The text of ``objects`` as Helm would store it in a release record."""
    notes: str = ""
    """What ``templates/NOTES.txt`` of the chart itself renders to, as Helm would store it."""
    looked: bool = False
    """The chart looked into the cluster: the same request may render to something else another time."""

    @property
    def tests(self) -> tuple[JsonObject, ...]:
        """The hooks that are nothing but tests of the release (``helm test``)."""
        return tuple(hook for hook in self.hooks if is_test(hook))


def hook_events(obj: JsonObject) -> tuple[str, ...]:
    """When Helm would run an object: ``pre-install``, ``test`` and so on; () for what is no hook."""
    said = find(obj, "metadata", "annotations", HOOK_ANNOTATION)
    events = (event.strip() for event in said.split(",")) if isinstance(said, str) else ()
    return tuple(event for event in events if event)


def is_test(obj: JsonObject) -> bool:
    """Whether Helm runs an object for ``helm test`` and at no other time."""
    events = hook_events(obj)
    return bool(events) and TEST_EVENTS.issuperset(events)


class Renderer(Protocol):
    """Renders charts. Raises RenderError with Helm's own words, shortened."""

    async def render(self, request: RenderRequest) -> Rendered:
        """Render one chart."""
        ...


class KeyedRenderer(Renderer, Protocol):
    """A renderer that can say when the same request will render to the same again."""

    async def identity(self, request: RenderRequest) -> str | None:
        """What a render depends on beside the request, such as the version of Helm; None where that is not known.

        Raises RenderError.
        """
        ...
