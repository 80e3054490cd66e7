"""The proxies that environment variables name, for requests to registries."""

from collections.abc import Mapping

from wharfinger.formats import proxies
from wharfinger.packages.errors import RegistryError


def read_proxies(environ: Mapping[str, str]) -> proxies.Proxies:
    """Return the proxies that the environment variables in ``environ`` name. Raises RegistryError for a proxy that cannot be
    used.
    """
    try:
        return proxies.read_proxies(environ)
    except proxies.ProxyAddressError as error:
        raise RegistryError(str(error), transient=False) from error
