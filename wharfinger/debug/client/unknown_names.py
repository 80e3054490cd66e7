"""The errors about names that a daemon does not know, with similar known names if there are any."""

from typing import Final

from wharfinger.debug.errors import DebugError
from wharfinger.runtime.inspector import Inspector, PackageSnapshot

CLAIM: Final = "claim/"
"""The prefix of a WorkerClaim's name in `wharfinger why`."""
_NEAR: Final = 0.75
"""The minimum similarity of suggested names, as a ratio of difflib."""
_MOST_MEANT: Final = 3


class NoSuchPackageError(DebugError):
    """The daemon has no package of this name."""


async def one_package(inspector: Inspector, name: str) -> PackageSnapshot:
    """Return one package. Raises NoSuchPackageError."""
    package = await inspector.package(name)
    if package is None:
        raise await no_such_package(inspector, name)
    return package


async def no_such_package(inspector: Inspector, name: str) -> NoSuchPackageError:
    """Return the error for an unknown package, or an unknown WorkerClaim."""
    if name.startswith(CLAIM):
        return NoSuchPackageError(
            f"no WorkerClaim named {name.removeprefix(CLAIM)!r}; `kubectl get workerclaims -A` lists them, if the daemon runs "
            "with --worker-pools"
        )
    hint = (
        await package_hint(inspector, name) or await why_incomplete(inspector) or "`wharfinger get packages` lists them"
    )
    return NoSuchPackageError(f"no package named {name!r}; {hint}")


async def why_incomplete(inspector: Inspector) -> str:
    """Return why the daemon may not know all packages yet; "" if it knows them all."""
    daemon = await inspector.daemon()
    if daemon.standby:
        return f"the daemon does not work on packages: {daemon.standby}"
    return "" if daemon.ready else "the daemon is starting, and does not know all packages yet; try again"


async def package_hint(inspector: Inspector, name: str) -> str:
    """Return a hint with the names that the user may have meant, "" if there are none.

    The user may have written ``namespace/instance`` instead of ``namespace.instance``, or left out the namespace, or made a
    mistake in the name.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - seldom needed

    meant = name.replace("/", ".", 1)
    names = [package.name for package in await inspector.packages() if package.name != name]
    if meant in names:
        return f"did you mean {meant}?"
    instances = [each for each in names if each.partition(".")[2] == meant]
    near = [*instances, *(each for each in get_close_matches(meant, names, cutoff=_NEAR) if each not in instances)]
    return f"did you mean {' or '.join(near[:_MOST_MEANT])}?" if near else ""


def nearest_hint(name: str, known: list[str], command: str) -> str:
    """Return a hint for an unknown name: the nearest known name, or the command that lists all names."""
    from difflib import get_close_matches  # noqa: PLC0415 - seldom needed

    near = get_close_matches(name, known, 1, _NEAR)
    return f"did you mean {near[0]!r}?" if near else f"`{command}` lists all"
