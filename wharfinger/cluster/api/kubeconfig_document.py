"""A connection as a kubeconfig for child processes that use the same cluster: hooks, and Helm if a chart queries the cluster.

The daemon's own configuration may be many files, a plugin or a pod's service account. A child process with its own
environment, or running as another user, could use none of them. Therefore the child process gets one document that contains
the certificates and the current credentials. That document is a secret for as long as the credentials are valid, so a caller
that writes it to a file has to delete the file soon.
"""

import base64
import binascii
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

import trio

from wharfinger.cluster.api.connection import Connection, ConnectionConfigError, StaticAuthorization, without_userinfo
from wharfinger.formats.json.value import JsonObject, JsonValue

_NAME: Final = "wharfinger"
_EXTRA: Final = "Impersonate-Extra-"


NOBODY: Final = "Bearer no-credentials"
"""An Authorization header with a token that no server accepts. A kubeconfig without credentials contains this token, because
kubectl would otherwise prompt for a user name if the server uses TLS.
"""


async def current_kubeconfig(connection: Connection, *, credentials: bool = True) -> JsonObject:
    """Return a kubeconfig that is valid now; without ``credentials``, it contains no credentials that a server accepts.

    Raises ConnectionConfigError.
    """

    def made() -> JsonObject:
        if not credentials:
            return kubeconfig_document(_anonymous(connection), "" if connection.server.startswith("http:") else NOBODY)
        return kubeconfig_document(connection, connection.authorization.header(renew=False))

    # The thread is abandoned when cancelled, because a plugin may hang without limit.
    return await trio.to_thread.run_sync(made, abandon_on_cancel=True)


def _anonymous(connection: Connection) -> Connection:
    return replace(
        connection,
        authorization=StaticAuthorization(),
        client_certificate=None,
        client_key=None,
        proxy=without_userinfo(connection.proxy)[0],
        headers=(),
    )


def kubeconfig_document(connection: Connection, authorization: str) -> JsonObject:
    """Return the kubeconfig of one cluster, one user and one context. ``authorization`` is the Authorization header, or "".

    Over plain HTTP, clients send only the credentials that are in the server's address, so the credentials are put there.
    Reads the certificates, so it blocks. Raises ConnectionConfigError for a header that no kubeconfig can express, and for a
    certificate that cannot be read.
    """
    name, secret, is_basic = _credentials(authorization)
    server = connection.server
    if secret and server.startswith("http://"):
        parts = urlsplit(server)
        server = urlunsplit(parts._replace(netloc=f"{quote(name, safe='')}:{quote(secret, safe='')}@{parts.netloc}"))
    cluster: JsonObject = {"server": server}
    if not connection.verify_tls:
        cluster["insecure-skip-tls-verify"] = True
    elif connection.ca_file is not None:
        cluster["certificate-authority-data"] = _inline(connection.ca_file)
    if connection.tls_server_name:
        cluster["tls-server-name"] = connection.tls_server_name
    if connection.proxy:
        cluster["proxy-url"] = connection.proxy
    user: JsonObject = {}
    if is_basic:
        user |= {"username": name, "password": secret}
    elif secret:
        user["token"] = secret
    if connection.client_certificate is not None and connection.client_key is not None:
        user["client-certificate-data"] = _inline(connection.client_certificate)
        user["client-key-data"] = _inline(connection.client_key)
    user |= _impersonation(connection.headers)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": connection.namespace}}],
        "current-context": _NAME,
    }


def _inline(path: Path) -> str:
    try:
        return base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise ConnectionConfigError(
            f"certificate {path}: {error.strerror}; restore the file that the kubeconfig names"
        ) from error


def _credentials(authorization: str) -> tuple[str, str, bool]:
    """Return the user's name, the secret (a token or a password), and whether it is a password for Basic authorization."""
    if not authorization:
        return _NAME, "", False
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer" and value:
        return _NAME, value, False
    if scheme.lower() == "basic":
        try:
            name, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ConnectionConfigError(
                "credentials for Basic authorization: expected NAME:PASSWORD in Base64, found other text"
            ) from error
        return name, secret, True
    raise ConnectionConfigError(
        "credentials for hooks and charts: expected a token, a password or a certificate; other logins cannot be passed on"
    )


def _impersonation(headers: tuple[tuple[str, str], ...]) -> JsonObject:
    user: JsonObject = {}
    groups: list[JsonValue] = []
    extra: dict[str, list[JsonValue]] = {}
    for header, value in headers:
        if header == "Impersonate-User":
            user["as"] = value
        elif header == "Impersonate-Uid":
            user["as-uid"] = value
        elif header == "Impersonate-Group":
            groups.append(value)
        elif header.startswith(_EXTRA):
            extra.setdefault(header.removeprefix(_EXTRA), []).append(value)
    if groups:
        user["as-groups"] = groups
    if extra:
        user["as-user-extra"] = {**extra}
    return user
