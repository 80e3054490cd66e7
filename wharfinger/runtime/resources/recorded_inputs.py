"""The inputs of a revision: the parts of a resource from which the revision was made. They are stored with its record.

A rollback installs a revision's inputs again: the same content of the package, by its digest, with the same settings, overrides
and patches. The settings are complete: they include the texts from Secrets to which the resource refers, because these Secrets
may change later. Therefore the inputs are stored only in Secrets, together with the paths of the secret texts.
"""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    canonical_json,
    checksum,
    decode_json,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)
from wharfinger.packages.kustomizing.patches import Patch, patches_document, read_patches
from wharfinger.packages.rendering.resource_overrides import WorkloadOverride, read_overrides
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings, texts_at

MAX_BYTES: Final = 4 * 1024 * 1024
WHAT: Final = "the recorded state of a revision"


@dataclass(frozen=True, slots=True)
class RecordedInputs:
    """The package, its version and digest, and everything else from which the revision's objects were made."""

    package: str
    version: str
    digest: str
    settings: JsonObject = field(default_factory=dict, repr=False)
    settings_version: int = 0
    hidden: frozenset[tuple[str, ...]] = frozenset()
    """The paths of the settings whose texts come from Secrets."""
    overrides: tuple[WorkloadOverride, ...] = ()
    patches: tuple[Patch, ...] = ()

    @property
    def resolved(self) -> ResolvedSettings:
        """Return the recorded settings, with the texts in them that are secret."""
        secrets = tuple(sorted(texts_at(self.settings, self.hidden)))
        return ResolvedSettings(self.settings, secrets, self.hidden, self.settings_version)

    @property
    def content(self) -> str:
        """Return a checksum of everything except the digest, for comparison with a desired state whose package is not fetched
        yet.
        """
        return checksum({**self.document, "digest": ""})

    def differs(self, content: str, digest: str) -> bool:
        """Return whether these inputs have another checksum than ``content``, or another digest than ``digest``. If one of the
        two digests is unknown (""), the digests count as equal.
        """
        return self.content != content or (bool(digest and self.digest) and self.digest != digest)

    @property
    def document(self) -> JsonObject:
        """Return the inputs in their recorded form."""
        hidden: list[JsonValue] = [list[JsonValue](path) for path in sorted(self.hidden)]
        return {
            "package": self.package,
            "version": self.version,
            "digest": self.digest,
            "settings": self.settings,
            "settingsVersion": self.settings_version,
            "hidden": hidden,
            "resourceRequests": [each.document for each in self.overrides],
            "patches": patches_document(self.patches),
        }

    def encoded(self) -> bytes:
        """Return the document as bytes; equal inputs have equal bytes."""
        return canonical_json(self.document)


def inputs_of(spec: PackageSpec, settings: ResolvedSettings) -> RecordedInputs:
    """Return the inputs that a resource asks for. Its package is not fetched yet, so ``digest`` is the digest that the resource
    pins; "" if it pins none.
    """
    wanted = spec.directives
    return RecordedInputs(
        package=spec.package,
        version=spec.version,
        digest=wanted.digest,
        settings=settings.settings,
        settings_version=settings.version,
        hidden=settings.hidden,
        overrides=wanted.overrides,
        patches=wanted.patches,
    )


def read_inputs(document: JsonObject) -> RecordedInputs:
    """Read the recorded form of inputs. Raises FormatError."""
    hidden = (path for path in find_list(document, "hidden") if isinstance(path, list))
    return RecordedInputs(
        package=find_str(document, "package"),
        version=find_str(document, "version"),
        digest=find_str(document, "digest"),
        settings=find_object(document, "settings"),
        settings_version=find_int(document, "settingsVersion"),
        hidden=frozenset(tuple(str(part) for part in path) for path in hidden),
        overrides=read_overrides(find(document, "resourceRequests")),
        patches=read_patches(find(document, "patches")),
    )


def decode_inputs(data: bytes) -> RecordedInputs | None:
    """Read the bytes of `RecordedInputs.encoded`; return None if there are no bytes. Raises FormatError."""
    if not data:
        return None
    return read_inputs(as_object(decode_json(data, max_bytes=MAX_BYTES, what=WHAT), WHAT))
