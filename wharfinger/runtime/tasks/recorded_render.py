"""The render in a release record, which is used again for the same inputs.

A chart may use random values (``randAlphaNum``, ``genCA``). If the chart were rendered again for the same inputs, the
manifests would have other passwords. The record in the cluster has the manifest and the hooks, even if the daemon's own files
are lost. A label on the record, the *seal*, has a fingerprint of the inputs and a fingerprint of the render. If the inputs in
the seal are the current inputs, the render in the record is used, and the chart is not rendered.

The user's patches and overrides and the changes for maintenance (``spec.patches``, ``spec.resourceRequests``,
``spec.maintenance``) do not count as inputs. If they change the render, the record also has the original render, beside the
applied manifest. The seal has the fingerprint of the original render, to which later patches and overrides are applied.

A seal does not prove that the daemon wrote a record, because Helm copies the label to revisions that users make. On such a
revision, the seal matches only if the manifest is the same. So the newest record whose content matches its seal is used. The
seal is a label, because Helm keeps labels when it rewrites a record, but drops annotations. A user who may write the Secret
can also write a matching seal.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.records.release import MAX_DOCUMENT_BYTES, Release, ReleaseStatus
from wharfinger.cluster.releases.hooks import hook_entry, parse_hooks, read_hooks
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    ShapeError,
    as_object,
    canonical_json,
    decode_json,
    encode_json,
    find_list,
    find_str,
)
from wharfinger.packages.definition.definition import Layout
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.rendering.helm_output import read_output
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest

RENDER_LABEL: Final = "wharfinger.dev/render"
FORMAT: Final = 1
"""A number in the fingerprint of the inputs. It must be raised if a new version of the daemon makes a different render from the
same inputs. After that, each chart is rendered again once.
"""
PLATFORM: Final = ("global", "Platform")
"""The top-level keys of the values under which a chart finds data about the platform, such as the Modules that are on. In a
plain chart, these keys have no special meaning, because all its values come from the chart and the user.
"""
OF_THE_PLATFORM: Final = ("enabledModules", "discovery", "modules")

_DIGEST_BYTES: Final = 15
"""The length of a digest. Two digests in hexadecimal, the dot and _LOOKED just fit into the value of a label."""
_LOOKED: Final = ".l"
_SEAL: Final = re.compile(r"([0-9a-f]{30})\.([0-9a-f]{30})(\.l)?")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A render, with the values and the label ("" if there is none) of the record that contains it or will contain it.

    ``base`` is the render before overrides, which the record has beside the manifest; b"" if the record has no such render.
    """

    rendered: Rendered
    values: JsonObject
    label: str
    base: bytes = b""


def render_inputs(request: RenderRequest, use: ChartUse, layout: Layout) -> str:
    """Return the fingerprint of everything on which a render depends, as far as the chart's templates can read it.

    The following are not inputs, so their change does not cause another render:

    * the kind of the operation, an install or an upgrade;
    * the program that renders;
    * API versions of the cluster and values of the platform that no template reads: they often change with other packages;
    * patches and overrides, which are applied to a render afterwards.

    Raises FormatError for values that have no canonical form.
    """
    use = use.with_values(request.values)
    parts: JsonObject = {
        "format": FORMAT,
        "chart": [request.chart_digest, request.chart_file],
        "release": [request.release, request.namespace],
        "values": request.values if layout is Layout.CHART else _read_values(request.values, use),
        "kubernetes": [request.kube_version if use.kube_version else "", *use.versions(request.api_versions)],
    }
    return _digest([canonical_json(parts)])


def seal(inputs: str, rendered: Rendered) -> str:
    """Return the seal for a record: a label with the fingerprint ``inputs`` and the fingerprint of the render.

    Raises ReleaseError.
    """
    return f"{inputs}.{_content(rendered.manifest, _hook_texts(rendered))}{_LOOKED if rendered.looked else ''}"


def pack_base(rendered: Rendered) -> bytes:
    """Return a render without overrides as bytes. If overrides have changed the manifest of a record, the record contains these
    bytes, too. Blocking. Raises ReleaseError.
    """
    return zlib.compress(encode_json({"manifest": rendered.manifest, "hooks": [*_hook_texts(rendered)]}))


def matching(history: Sequence[Release], inputs: str) -> Iterator[Release]:
    """Yield the revisions that were rendered from these inputs, according to the label that `seal` has made; the newest first.
    The content of a revision may not be loaded yet (`Release.whole`).

    The search ends at the first revision that the daemon deployed and that has no such label, because all renders before it are
    out of date. Revisions that users made do not end the search.
    """
    for release in reversed(history):
        found = _SEAL.fullmatch(release.labels.get(RENDER_LABEL, ""))
        if found is not None and found[1] == inputs:
            yield release
        elif release.holder and release.status in {ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED}:
            return


def of_revision(history: Sequence[Release], revision: int, inputs: str) -> tuple[Release, ...]:
    """Return a tuple of the revision with this number. The tuple is empty if the revision is gone, or if its label from `seal`
    is missing or has other inputs.
    """
    found = (release for release in history if release.revision == revision)
    seals = ((release, _SEAL.fullmatch(release.labels.get(RENDER_LABEL, ""))) for release in found)
    return tuple(release for release, seal_ in seals if seal_ is not None and seal_[1] == inputs)


def unsealed(history: Sequence[Release]) -> Release | None:
    """Return the last revision if a daemon deployed it but did not label it with a seal; otherwise None."""
    last = history[-1] if history else None
    is_ours = last is not None and last.holder and last.status is ReleaseStatus.DEPLOYED
    return last if last is not None and is_ours and RENDER_LABEL not in last.labels else None


def has_looked(release: Release) -> bool:
    """Return whether the chart looked up objects in the cluster when it was rendered."""
    return release.labels.get(RENDER_LABEL, "").endswith(_LOOKED)


def is_sealed(release: Release) -> bool:
    """Return whether the render in a record has the fingerprint that the record's label (the seal) states. Blocking."""
    found = _SEAL.fullmatch(release.labels.get(RENDER_LABEL, ""))
    try:
        return found is not None and found[2] == _content(*_render_of(release))
    except FormatError:
        return False  # another writer has written content that cannot be read


def read_recorded(release: Release, crds: tuple[JsonObject, ...]) -> Recorded:
    """Read the render from a record, and add ``crds``, which records do not contain. Blocking. Raises RenderError and
    FormatError.
    """
    manifest, texts = _render_of(release)
    what = f"hook of release {release.namespace}/{release.name}"
    rendered = Rendered(
        crds=crds,
        hooks=tuple(hook.obj for hook in read_hooks(texts, what)),
        objects=read_output(manifest).objects,
        manifest=manifest,
        notes=find_str(release.document, "info", "notes"),
        looked=has_looked(release),
    )
    return Recorded(rendered, release.values, release.labels.get(RENDER_LABEL, ""), release.base)


def _render_of(release: Release) -> tuple[str, tuple[str, ...]]:
    """Return the manifest before overrides, and the manifests of the chart's hooks. Raises FormatError."""
    if not release.base:
        return release.manifest, tuple(find_str(hook, "manifest") for hook in release.hooks)
    what = f"render of release {release.namespace}/{release.name}"
    unzip = zlib.decompressobj()
    try:
        text = unzip.decompress(release.base, MAX_DOCUMENT_BYTES)
    except zlib.error as error:
        raise ShapeError(f"{what}: {error}") from error
    if not unzip.eof:
        raise ShapeError(f"{what}: it is incomplete, or larger than {MAX_DOCUMENT_BYTES} bytes")
    whole = as_object(decode_json(text, max_bytes=MAX_DOCUMENT_BYTES, what=what), what)
    return find_str(whole, "manifest"), tuple(
        find_str(whole, "hooks", at) for at in range(len(find_list(whole, "hooks")))
    )


def _hook_texts(rendered: Rendered) -> tuple[str, ...]:
    return tuple(find_str(hook_entry(hook), "manifest") for hook in parse_hooks(rendered.hooks))


def _read_values(values: JsonObject, use: ChartUse) -> JsonObject:
    """Return the values without the values of the platform that no template reads."""
    unread = [word for word in OF_THE_PLATFORM if not use.reads(word)]
    kept = dict(values)
    for key in PLATFORM:
        section = values.get(key)
        if isinstance(section, dict):
            kept[key] = {name: value for name, value in section.items() if name not in unread}
    return kept


def _content(manifest: str, hooks: Iterable[str]) -> str:
    return _digest([manifest.encode(), *(hook.encode() for hook in hooks)])


def _digest(parts: Iterable[bytes]) -> str:
    made = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.hexdigest()
