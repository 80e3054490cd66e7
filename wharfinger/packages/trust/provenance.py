"""Provenance files of Helm: the digest of a chart's archive and its ``Chart.yaml``, signed with OpenPGP.

In a Helm repository, the file is beside the archive (``web-1.2.0.tgz.prov``). In a registry, it is a layer of the chart. It must
state the archive, the name and the version of the requested chart. Otherwise an old file and its old archive could be used
instead of a new version.

Source: Helm's documentation, "Helm Provenance and Integrity".
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import as_object, find_object, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_PROVENANCE
from wharfinger.packages.registry.registry import Manifest, Registry
from wharfinger.packages.trust.openpgp import MAX_TEXT, SignedText, read_keyring, verify_text

MAX_PROVENANCE: Final = MAX_TEXT
_BETWEEN: Final = b"\n...\n"
"""The line between the two documents, at which Helm splits the text."""
MISSING: Final = (
    "expected a provenance file, which spec.verify.keyring demands, found none; package the chart with `helm package --sign` and "
    "publish its .prov, or remove spec.verify"
)


@dataclass(frozen=True, slots=True)
class ChartClaim:
    """The chart that a provenance file must be about. If ``version`` is "", every version is accepted."""

    name: str
    version: str
    archive: str
    """The SHA-256 of the archive, in hexadecimal."""


async def provenance_refusal(
    registry: Registry, repository: str, manifest: Manifest, version: str, keyring: str
) -> str:
    """Return why a chart in a registry is not trusted: its provenance file is missing or wrong. Return "" if the chart is
    trusted.

    ``version`` is the requested version; "" for any. Raises PackageError if the file cannot be read.
    """
    chart = next((each for each in manifest.layers if each.media_type == HELM_CHART), None)
    layer = next((each for each in manifest.layers if each.media_type == HELM_PROVENANCE), None)
    if chart is None or layer is None:
        return MISSING
    if layer.size > MAX_PROVENANCE:
        return f"the provenance file has {layer.size} bytes; at most {MAX_PROVENANCE} are read"
    async with registry.blob(repository, layer) as chunks:
        data = b"".join([chunk async for chunk in chunks])
    try:
        await check_provenance(data, keyring, ChartClaim(repository.rpartition("/")[2], version, chart.digest.hex))
    except ArtifactError as error:
        return f"{error}"
    return ""


async def check_provenance(data: bytes, keyring: str, chart: ChartClaim) -> None:
    """Raise ArtifactError unless a provenance file is about the chart, and is signed with a key of the keyring. Raises
    RegistryError if gpgv cannot be run.
    """
    signed = await verify_text(data, read_keyring(keyring))
    _check_content(signed, chart)


def _check_content(signed: SignedText, chart: ChartClaim) -> None:
    by = f"the provenance file by {signed.fingerprint}"
    try:
        documents = signed.text.replace(b"\r\n", b"\n").split(_BETWEEN)
        if len(documents) != 2:
            raise ArtifactError(f"{by} has {len(documents)} documents; expected Chart.yaml and the digests")
        read = (read_yaml(each, what="provenance file") for each in documents)
        about, digests = (as_object(each, "provenance file") for each in read)
        name, version = find_str(about, "name"), find_str(about, "version")
        files = find_object(digests, "files")
        digest = find_str(files, f"{name}-{version}.tgz").removeprefix("sha256:").lower()
    except FormatError as error:
        raise ArtifactError(f"{by} cannot be read: {error}") from error
    if name != chart.name or (chart.version and _plain(version) != _plain(chart.version)):
        raise ArtifactError(
            f"{by} is for {name[:100]} {version[:100]}, but {chart.name} {chart.version} was requested; publish the "
            "file of the requested version"
        )
    if digest != chart.archive:
        raise ArtifactError(f"{by} is for another archive of {name} {version}; package and sign the chart again")


def _plain(version: str) -> str:
    return version.replace("_", "+").removeprefix("v")
