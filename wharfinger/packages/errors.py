"""The errors of ``wharfinger.packages``, which fetches, reads, configures and renders packages.

::

    PackageError                  base; .transient states whether a retry without a change can help
    ├── RegistryError             the registry failed, or refused a request: .transient by its status
    │   ├── LoginRefusedError     the login was refused, or is missing; permanent until it changes
    │   └── ArtifactNotFoundError no such repository, tag or digest; permanent until it is pushed or the name changes
    ├── DigestError               bytes do not match their digest
    ├── TrustError                no signature satisfies the policy of the repository
    ├── AddressError              an invalid address
    ├── ArtifactError             the artifact is not a package (media types, broken archive, no Chart.yaml)
    ├── StoreError                the disk failed
    ├── RulesError                the rules of a schema could not be evaluated, for a reason other than the rules
    ├── RenderError               helm refused the chart or the values
    │   └── LookupRefusedError    a template looked up an object that its release may not read
    ├── PatchError                a patch of rendered objects matches nothing, or cannot be applied
    └── ConversionError           settings of an older version could not be converted to the newest

Two more PackageErrors are defined elsewhere: SettingsError (:mod:`wharfinger.packages.settings.values`) and KeyFormatError
(:mod:`wharfinger.packages.trust.keys`).
"""


class PackageError(Exception):
    """The base of all errors of ``wharfinger.packages``."""

    transient: bool = False


class RegistryError(PackageError):
    """The registry failed, or refused a request."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class ArtifactNotFoundError(RegistryError):
    """The registry has no such artifact."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)


class TrustError(PackageError):
    """The artifact lacks a signature that the repository's policy demands. Transient, because it may be signed later."""

    transient = True


class LoginRefusedError(RegistryError):
    """The registry or its token server has refused the login, or requires a login and got none."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)


class DigestError(PackageError):
    """Bytes that do not match their digest, or an invalid digest. Transient if the bytes were damaged in a transfer."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class AddressError(PackageError):
    """An invalid address (registry, repository, tag)."""


class ArtifactError(PackageError):
    """The artifact was read, but it is not a package."""


class StoreError(PackageError):
    """The store on disk failed: it is full, not writable or damaged. Usually transient, because space may be freed."""

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


class RenderError(PackageError):
    """The chart could not be rendered with these values. Transient, for example, if helm was killed or too slow."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class PatchError(PackageError):
    """A patch of rendered objects matches nothing, or cannot be applied. Transient if kustomize was terminated."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class LookupRefusedError(RenderError):
    """A template looked up something that its release may not read. Permanent until access is granted or the chart changes."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)


class ConversionError(PackageError):
    """Settings could not be converted to the newest version. The error is transient, for example, if jq was killed or too slow.

    ``late`` is True if the conversion took too long. `package check` reports this as a fault of the conversion's programs.
    """

    def __init__(self, message: str, *, transient: bool = False, late: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.late = late


class RulesError(PackageError):
    """The rules of a schema could not be evaluated, for a reason other than the rules themselves.

    The error is transient by default, because the worker process may be able to start later.
    """

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient
