"""A program that reads the connection to a cluster from a kubeconfig, or from its pod's service account, and prints it as JSON.

The program imports the ``kubernetes`` package, so that the daemon need not import it: that package and its imports take 14 MiB
of memory, and a daemon needs it only once (:mod:`wharfinger.runtime.daemon.cluster_connection`). The output has credentials, so
it must go through a pipe, never to a file.

Only a fixed text, or the path of a token file, can be passed on as credentials. All other credentials have to be renewed by the
``kubernetes`` package, in the process that uses them.
"""

import os
import sys
from pathlib import Path
from typing import Final

from wharfinger.cluster.api.connection import (
    Connection,
    ConnectionConfigError,
    StaticAuthorization,
    TokenFileAuthorization,
    load_connection,
)
from wharfinger.formats.json.value import (
    JsonObject,
    ShapeError,
    as_object,
    decode_json,
    encode_json,
    find_list,
    find_object,
    find_str,
)

MAX_BYTES: Final = 1024 * 1024
_PATHS: Final = ("ca_file", "client_certificate", "client_key")


def arguments(kubeconfig: Path | None, context: str, certificates: Path) -> tuple[str, ...]:
    """Return the command-line arguments with which this program reads the given connection."""
    return "" if kubeconfig is None else str(kubeconfig), context, str(certificates)


def encoded(connection: Connection) -> bytes:
    """Return a connection as JSON. Raises ShapeError if the credentials are neither a fixed text nor a token file."""
    match connection.authorization:
        case StaticAuthorization(value):
            credentials: JsonObject = {"value": value}
        case TokenFileAuthorization(path):
            credentials = {"path": str(path)}
        case _:
            raise ShapeError("the credentials have to be renewed by the process that uses them")
    paths: JsonObject = {name: str(path) for name in _PATHS if (path := getattr(connection, name)) is not None}
    return encode_json(
        {
            "server": connection.server,
            "credentials": credentials,
            "namespace": connection.namespace,
            "verify_tls": connection.verify_tls,
            "tls_server_name": connection.tls_server_name,
            "proxy": connection.proxy,
            "headers": [[name, value] for name, value in connection.headers],
            "in_cluster": connection.in_cluster,
            "paths": paths,
        }
    )


def decoded(text: bytes) -> Connection:
    """Return the connection in the program's output. Raises ConnectionConfigError if the program printed why there is no
    connection, and FormatError if the text is not output of the program.
    """
    found = as_object(decode_json(text, max_bytes=MAX_BYTES, what="a connection"), "a connection")
    if why := find_str(found, "refused"):
        raise ConnectionConfigError(why)
    if not find_str(found, "server"):
        raise ShapeError("a connection: it has no server")
    paths = {name: Path(str(path)) for name, path in find_object(found, "paths").items()}
    token_file = find_str(found, "credentials", "path")
    return Connection(
        server=find_str(found, "server"),
        authorization=(
            TokenFileAuthorization(Path(token_file))
            if token_file
            else StaticAuthorization(find_str(found, "credentials", "value"))
        ),
        namespace=find_str(found, "namespace"),
        ca_file=paths.get("ca_file"),
        verify_tls=found.get("verify_tls") is not False,
        client_certificate=paths.get("client_certificate"),
        client_key=paths.get("client_key"),
        tls_server_name=find_str(found, "tls_server_name"),
        proxy=find_str(found, "proxy"),
        headers=tuple((str(pair[0]), str(pair[1])) for pair in find_list(found, "headers") if isinstance(pair, list)),
        in_cluster=found.get("in_cluster") is True,
    )


def main() -> None:
    """Print the connection that the arguments name, or the reason why there is none.

    The process ends without cleanup, because the ``kubernetes`` package would delete the certificates that it wrote to the
    folder ``certificates``.
    """
    kubeconfig, context, certificates = sys.argv[1:]
    try:
        answer = encoded(load_connection(Path(kubeconfig) if kubeconfig else None, context, Path(certificates)))
    except ConnectionConfigError as error:
        answer = encode_json({"refused": str(error)})
    sys.stdout.buffer.write(answer)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
