"""The address of an API server and the credentials for it, read from a kubeconfig or from the files of a pod.

The Python package ``kubernetes`` reads both. It also runs exec plugins and refreshes tokens. Its API classes are never
instantiated, because they need 80 MB. The package is imported only when a connection is loaded, because the import takes half a
second and 50 MB. :func:`load_connection` blocks, so call it in a thread.

This module adds some guarantees:

* If an exec plugin fails, ConnectionConfigError is raised. (The ``kubernetes`` package only logs the failure, and continues
  without credentials.)
* A token file is read at each call of ``header``. Other credentials that can be refreshed are loaded again if the caller passes
  ``renew=True``, as a client does after a 401.
* ``as`` (impersonation) in the kubeconfig is used. If it were ignored, requests would silently have more rights than the user
  asked for.
* The server's certificate is left unchecked only if the kubeconfig contains ``insecure-skip-tls-verify``.
* The proxy is the kubeconfig's ``proxy-url``, or else that of ``HTTPS_PROXY`` or ``HTTP_PROXY`` with the exceptions of
  ``NO_PROXY``, as for kubectl.
* No token is ever part of a ``repr`` or of an error.
"""

import base64
import binascii
import importlib
import os
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, cast

import httpx

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, find_list, find_object, find_str
from wharfinger.formats.proxies import ProxyAddressError, read_proxies

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder of a pod's token, CA and namespace."""


class ConnectionConfigError(ClusterError):
    """The configuration is not sufficient to reach the cluster. A retry helps only after the configuration is changed."""

    transient = False


class Authorization(Protocol):
    """The source of the Authorization header ("" for no header). `header` may block: call it in a thread unless the header is
    static.
    """

    def header(self, *, renew: bool) -> str:
        """Return the value of the Authorization header; with ``renew``, discard cached credentials first.

        Raises ConnectionConfigError.
        """
        ...


@dataclass(frozen=True, slots=True)
class StaticAuthorization:
    """A header that never changes, such as ``Bearer …``. Its method `header` does not block."""

    value: str = field(default="", repr=False)

    def header(self, *, renew: bool) -> str:  # noqa: ARG002 - part of the protocol
        """Return the same header each time."""
        return self.value


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and the credentials for it. The URL ``server`` may have a path, as behind a proxy for several clusters."""

    server: str
    authorization: Authorization = field(default=StaticAuthorization(), repr=False)
    namespace: str = "default"
    ca_file: Path | None = None
    verify_tls: bool = True
    client_certificate: Path | None = None
    client_key: Path | None = field(default=None, repr=False)
    tls_server_name: str = ""
    proxy: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    """Additional headers of every request: those for impersonation."""
    in_cluster: bool = False
    """True if the connection was made from a pod's service account."""


def bearer(token: str) -> StaticAuthorization:
    """Return the authorization by a token that does not expire, such as that of the embedded control plane."""
    return StaticAuthorization(f"Bearer {token}" if token else "")


def load_connection(kubeconfig: Path | None, context: str = "", certificates: Path | None = None) -> Connection:
    """Read the connection to the cluster. Raises ConnectionConfigError with a remedy.

    The function reads files and runs exec plugins, so it blocks: call it in a thread. If ``kubeconfig`` is None, the function
    reads the files of ``$KUBECONFIG``, or else ``~/.kube/config``, or else a pod's service account. If ``context`` is "", it uses
    the current context of the file. It writes certificates that the file contains as data to the folder ``certificates`` (by
    default, the system's temporary folder). If the process is killed, these files stay there.
    """
    if kubeconfig is not None:
        try:
            is_there = kubeconfig.is_file()
        except OSError as error:  # such as a folder that may not be entered
            raise ConnectionConfigError(
                f"kubeconfig {kubeconfig}: {error.strerror}; give another with --kubeconfig"
            ) from error
        if kubeconfig.is_dir():
            raise ConnectionConfigError(f"kubeconfig {kubeconfig}: it is a folder; name a file with --kubeconfig")
        if not is_there:
            raise ConnectionConfigError(f"kubeconfig {kubeconfig}: no such file; give one with --kubeconfig")
        return _from_kubeconfig(str(kubeconfig), context, certificates)
    paths = os.environ.get("KUBECONFIG", "")
    if paths:
        return _from_kubeconfig(paths, context, certificates)
    default = Path("~/.kube/config").expanduser()
    if os.path.isfile(default):  # noqa: PTH113 - False, too, if the file may not be looked at
        return _from_kubeconfig(str(default), context, certificates)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return load_service_account(SERVICE_ACCOUNT, os.environ)
    raise ConnectionConfigError(
        "no cluster is configured: no --kubeconfig, no $KUBECONFIG, no ~/.kube/config, and this is not a pod; "
        "give a kubeconfig, or start `wharfinger run --embedded`, which writes embedded/kubeconfig into its state folder"
    )


# -- a pod ------------------------------------------------------------------------------------------------------------


def load_service_account(folder: Path, environ: Mapping[str, str]) -> Connection:
    """Return the connection of a pod with its service account.

    The token file is read at each call of ``header``, because the kubelet rotates it.
    """
    package = _kubernetes("kubernetes.config.incluster_config")
    configuration = _new_configuration()
    loader = cast("_InClusterFactory", package.InClusterConfigLoader)(
        token_filename=str(folder / "token"), cert_filename=str(folder / "ca.crt"), environ=environ
    )
    try:
        loader.load_and_set(configuration)
    except (_config_exception(), OSError) as error:
        raise ConnectionConfigError(
            f"service account in {folder}: {error}; check that the pod mounts its service account token"
        ) from error
    namespace = _read_text(folder / "namespace") or "default"
    return Connection(
        server=configuration.host,
        authorization=TokenFileAuthorization(folder / "token"),
        namespace=namespace,
        ca_file=folder / "ca.crt",
        proxy=_proxy_of(configuration.host, "", environ),
        in_cluster=True,
    )


def _proxy_of(server: str, named: str, environ: Mapping[str, str]) -> str:
    """Return the address of the proxy for requests to a server, as kubectl chooses it: ``named``, the proxy in the kubeconfig,
    or else the one that the environment variables name; "" if there is no proxy. Raises ConnectionConfigError.
    """
    if named:
        return named
    try:
        found = read_proxies(environ).of(httpx.URL(server))
    except (ProxyAddressError, httpx.InvalidURL) as error:
        raise ConnectionConfigError(str(error)) from error
    return "" if found is None else str(found)


@dataclass(frozen=True, slots=True)
class TokenFileAuthorization:
    """A bearer token in a file that another process rotates. `header` reads the file at each call; callers cache the token."""

    path: Path

    def header(self, *, renew: bool) -> str:  # noqa: ARG002 - it is always read anew
        """Return the header with the file's current token."""
        token = _read_text(self.path)
        if not token:
            raise ConnectionConfigError(
                f"token file {self.path}: expected a bearer token, found no file or an empty one"
            )
        return f"Bearer {token}"


# -- a kubeconfig -----------------------------------------------------------------------------------------------------


def _from_kubeconfig(paths: str, context: str, certificates: Path | None) -> Connection:
    loaded = _load_kubeconfig(paths, context, certificates)
    user = loaded.user
    authorization: Authorization
    token_file = find_str(user, "tokenFile")
    if token_file and not find_str(user, "token"):
        authorization = TokenFileAuthorization(loaded.user_folder / token_file)
        authorization.header(renew=False)
    elif find_object(user, "exec") or find_object(user, "auth-provider"):
        authorization = KubeconfigAuthorization(loaded, lambda: _load_kubeconfig(paths, context, certificates))
    else:
        authorization = StaticAuthorization(loaded.token())
    configuration = loaded.configuration
    server, basic = without_userinfo(configuration.host)
    if basic and authorization == StaticAuthorization():
        authorization = StaticAuthorization(basic)
    return Connection(
        server=server,
        authorization=authorization,
        namespace=loaded.namespace,
        ca_file=Path(configuration.ssl_ca_cert) if configuration.ssl_ca_cert else None,
        verify_tls=configuration.verify_ssl is not False,
        client_certificate=Path(configuration.cert_file) if configuration.cert_file else None,
        client_key=Path(configuration.key_file) if configuration.key_file else None,
        tls_server_name=configuration.tls_server_name or "",
        proxy=_proxy_of(server, loaded.proxy, os.environ),
        headers=_impersonation(user),
    )


def without_userinfo(url: str) -> tuple[str, str]:
    """Return a URL without its user info, and the Basic Authorization header for that user info; the header is "" if the URL has
    no user info.

    ``http://user:password@host`` becomes ``http://host`` and a header. An address is shown and logged, so it must not
    contain credentials.
    """
    parts = urllib.parse.urlsplit(url)
    userinfo, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, ""
    credentials = base64.b64encode(urllib.parse.unquote(userinfo).encode()).decode()
    return urllib.parse.urlunsplit(parts._replace(netloc=place)), f"Basic {credentials}"


class KubeconfigAuthorization:
    """Credentials that the ``kubernetes`` package obtains and refreshes (exec plugins, OIDC). `header` blocks."""

    def __init__(self, loaded: "_Kubeconfig", reload: Callable[[], "_Kubeconfig"]) -> None:
        self._lock = threading.Lock()
        self._loaded = loaded
        self._reload = reload

    def __repr__(self) -> str:
        """Return a text without any secret."""
        return "KubeconfigAuthorization()"

    def header(self, *, renew: bool) -> str:
        """Return the current header. The ``kubernetes`` package renews expired credentials; ``renew`` loads all of them again."""
        with self._lock:
            if renew:
                self._loaded = self._reload()
            return self._loaded.token()


@dataclass(frozen=True, slots=True)
class _Kubeconfig:
    """One context of a kubeconfig, as the ``kubernetes`` package loaded it."""

    configuration: "_Configuration" = field(repr=False)
    namespace: str
    user: JsonObject = field(repr=False)
    user_folder: Path
    proxy: str = field(repr=False)

    def token(self) -> str:
        """Return the Authorization header. If the ``kubernetes`` package knows that the credentials expired, refresh them."""
        hook = self.configuration.refresh_api_key_hook
        if hook is not None:
            hook(self.configuration)
        return self.configuration.api_key.get("BearerToken", "")


def _load_kubeconfig(paths: str, context: str, certificates: Path | None) -> _Kubeconfig:
    package = _kubernetes("kubernetes.config.kube_config")
    configuration = _new_configuration()
    try:
        merged = cast("_MergerFactory", package.KubeConfigMerger)(paths).config
        if merged is None:
            raise ConnectionConfigError(f"kubeconfig {paths}: no such file; give one with --kubeconfig")
        loader = cast("_LoaderFactory", package.KubeConfigLoader)(
            config_dict=merged,
            active_context=context or None,
            config_base_path=None,
            temp_file_path=None if certificates is None else str(certificates),
        )
        loader.load_and_set(configuration)
        contexts = [_plain(item) for item in loader.list_contexts()]
        chosen = _named(contexts, context or find_str(_plain(loader.current_context), "name"))
        clusters = [_plain(item) for item in merged.value.get("clusters") or ()]
        nodes = list(merged.value.get("users") or ())
    except (_config_exception(), binascii.Error, OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConnectionConfigError(
            f"kubeconfig {paths}: {_first_line(error).replace(f'{paths} file is', 'the file is')}; "
            "correct it or choose another kubeconfig"
        ) from error
    except ConnectionConfigError:
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        raise ConnectionConfigError(
            f"kubeconfig {paths}: not YAML: {_place_in_yaml(error)}; correct it or choose another kubeconfig"
        ) from error
    if not find_str(_named(clusters, find_str(chosen, "context", "cluster")), "cluster", "server"):
        raise ConnectionConfigError(f"kubeconfig {paths}: the context's cluster has no server; add its URL")
    node = next((node for node in nodes if find_str(_plain(node), "name") == find_str(chosen, "context", "user")), None)
    user = {} if node is None else find_object(_plain(node), "user")
    user_folder = Path(str(getattr(node, "path", ""))).expanduser().absolute().parent
    _check_plugin(paths, user, configuration)
    namespace = find_str(chosen, "context", "namespace") or "default"
    proxy = configuration.proxy if not getattr(configuration, "_proxy_from_env", False) else ""
    return _Kubeconfig(configuration, namespace, user, user_folder, proxy or "")


def _check_plugin(paths: str, user: JsonObject, configuration: "_Configuration") -> None:
    """Raise ConnectionConfigError if an exec plugin failed. (The ``kubernetes`` package only logs the failure.)"""
    command = find_str(user, "exec", "command")
    if command and not configuration.api_key.get("BearerToken") and not configuration.cert_file:
        raise ConnectionConfigError(
            f"kubeconfig {paths}: the exec plugin {command!r} gave no credentials; "
            "run it by hand to see why (log in again?), or check that it is on PATH"
        )


def _impersonation(user: JsonObject) -> tuple[tuple[str, str], ...]:
    """Return ``as``, ``as-uid``, ``as-groups``, ``as-user-extra`` as request headers."""
    headers: list[tuple[str, str]] = []
    if name := find_str(user, "as"):
        headers.append(("Impersonate-User", name))
    if uid := find_str(user, "as-uid"):
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", str(group)) for group in find_list(user, "as-groups")]
    for key, values in find_object(user, "as-user-extra").items():
        headers += [(f"Impersonate-Extra-{key}", str(value)) for value in (values if isinstance(values, list) else [])]
    return tuple(headers)


def _named(items: list[JsonObject], name: str) -> JsonObject:
    return next((item for item in items if find_str(item, "name") == name), {})


def _plain(value: object) -> JsonObject:
    """Return an entry of a kubeconfig as plain Python values.

    The ``kubernetes`` package wraps these values in objects that record the path of each value.
    """
    return as_object(_unwrap(value), "kubeconfig entry")


def _unwrap(value: object) -> JsonValue:
    value = getattr(value, "value", value)
    if isinstance(value, Mapping):
        return {str(key): _unwrap(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unwrap(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ShapeError(f"kubeconfig entry: unexpected value of type {type(value).__name__}")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _place_in_yaml(error: Exception) -> str:
    """Return the line, the column and the problem of an error in YAML syntax. If the error has no place, return the first line of
    its text.
    """
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return _first_line(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


# -- types for the parts of the kubernetes package that are used here --------------------------------------------------


class _Configuration(Protocol):
    host: str
    api_key: dict[str, str]
    ssl_ca_cert: str | None
    cert_file: str | None
    key_file: str | None
    verify_ssl: bool | None
    tls_server_name: str | None
    proxy: str | None
    refresh_api_key_hook: "Callable[[_Configuration], None] | None"


class _Merged(Protocol):
    value: dict[str, list[object]]


class _Merger(Protocol):
    config: _Merged | None


class _MergerFactory(Protocol):
    def __call__(self, paths: str) -> _Merger: ...


class _Loader(Protocol):
    current_context: object

    def load_and_set(self, client_configuration: _Configuration) -> None: ...
    def list_contexts(self) -> list[object]: ...


class _LoaderFactory(Protocol):
    def __call__(
        self,
        *,
        config_dict: _Merged,
        active_context: str | None,
        config_base_path: str | None,
        temp_file_path: str | None,
    ) -> _Loader: ...


class _InClusterLoader(Protocol):
    def load_and_set(self, client_configuration: _Configuration) -> None: ...


class _InClusterFactory(Protocol):
    def __call__(self, *, token_filename: str, cert_filename: str, environ: Mapping[str, str]) -> _InClusterLoader: ...


class _Namespace(Protocol):
    """A module of the ``kubernetes`` package, of which only attributes are used."""

    def __getattr__(self, name: str) -> object: ...


def _kubernetes(module: str) -> _Namespace:
    return cast("_Namespace", importlib.import_module(module))


def _new_configuration() -> _Configuration:
    factory = cast("Callable[[], _Configuration]", _kubernetes("kubernetes.client.configuration").Configuration)
    return factory()


def _config_exception() -> type[Exception]:
    return cast("type[Exception]", _kubernetes("kubernetes.config.config_exception").ConfigException)
