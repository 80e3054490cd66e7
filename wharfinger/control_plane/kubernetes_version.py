"""The version of Kubernetes that the control plane of this process follows.

Only data differs between versions: the kinds, their fields, OpenAPI, and the roles and other objects of a new cluster. Each
table of data is a file beside the module that reads it. A table that differs in another version has a second file with the
number of that version in its name (``list_types-1.37.json``).

Each table is read once, often while the module that reads it is imported. So a process follows one version, and this version
must be chosen before any such module is imported.

>>> table(Path("tables/list_types.json")).name
'list_types.json'
"""

from pathlib import Path

from wharfinger.kube.version_option import DEFAULT, RELEASES


class _Choice:
    """The version of this process, and whether any part of the control plane has already used it."""

    version = DEFAULT
    is_used = False


def choose(version: str) -> None:
    """Choose the version of this process.

    Raises ValueError if the version is not supported, and RuntimeError if another version is already in use.
    """
    if version not in RELEASES:
        raise ValueError(f"expected {' or '.join(RELEASES)}, found {version!r}")
    if _Choice.is_used and version != _Choice.version:
        raise RuntimeError(
            f"this process already follows Kubernetes {_Choice.version}; start another process for {version}"
        )
    _Choice.version = version


def chosen() -> str:
    """Return the version, such as ``1.36``. After the first call, no other version can be chosen."""
    _Choice.is_used = True
    return _Choice.version


def table(path: Path) -> Path:
    """Return the file of a table for the chosen version of Kubernetes; ``path`` is the file for the default version."""
    version = chosen()
    if version == DEFAULT:
        return path
    own = path.with_name(f"{path.stem}-{version}{path.suffix}")
    return own if own.exists() else path
