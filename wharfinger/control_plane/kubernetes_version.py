"""The version of Kubernetes that the control plane of this process follows.

What differs between versions is data: the kinds, their fields, OpenAPI, the first roles. Each table is a file beside the module
that reads it; the tables of a version other than the default have its number in their names (``list_types-1.37.json``). A table
without such a file is the same in all versions.

The tables are read once, many of them when their modules are imported, as kube-apiserver has them compiled in. So a process
follows one version, and it is chosen before the modules that read tables are imported.

>>> table(Path("tables/list_types.json")).name
'list_types.json'
"""

from pathlib import Path

from wharfinger.kube.version_option import DEFAULT, RELEASES


class _Choice:
    """The version of this process, and whether a part of the control plane relies on it."""

    version = DEFAULT
    is_used = False


def choose(version: str) -> None:
    """Choose the version of this process.

    Raises ValueError if the version is not supported, and RuntimeError if another one is already in use.
    """
    if version not in RELEASES:
        raise ValueError(f"expected {' or '.join(RELEASES)}, found {version!r}")
    if _Choice.is_used and version != _Choice.version:
        raise RuntimeError(
            f"this process already follows Kubernetes {_Choice.version}; start another one for {version}"
        )
    _Choice.version = version


def chosen() -> str:
    """Return the version, such as ``1.36``. From then on, no other version can be chosen."""
    _Choice.is_used = True
    return _Choice.version


def table(path: Path) -> Path:
    """Return the file of a table in the chosen version; ``path`` is its file in the default version."""
    version = chosen()
    if version == DEFAULT:
        return path
    own = path.with_name(f"{path.stem}-{version}{path.suffix}")
    return own if own.exists() else path
