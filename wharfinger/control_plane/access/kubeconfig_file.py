"""The kubeconfig that gives clients access to a served control plane, and the file with the administrator's token. Only their
owner can read these files.

kubectl and helm do not send tokens to a plain HTTP server, but they do send the credentials in its URL. So the kubeconfig for
such a server contains the token twice: as the user's token, and in the server's URL. Files are replaced as a whole, so they are
never half written.
"""

import base64
import os
import secrets
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.kubeconfig import USER

TOKEN_BYTES: Final = 32
MAX_TOKEN_CHARS: Final = 512


def kubeconfig(host: str, port: int, token: str, authority: str = "") -> JsonObject:
    """Return a kubeconfig with one context. The kubeconfig may be written as JSON, because JSON is also YAML.

    ``host`` has the form that it has in a URL (IPv6 in brackets). ``authority`` is the certificate (PEM) of the authority that
    signed the server's certificate; "" means a server without TLS.
    """
    cluster: JsonObject = {"server": f"http://{USER}:{quote(token, safe='')}@{host}:{port}"}
    if authority:
        data = base64.b64encode(authority.encode()).decode()
        cluster = {"server": f"https://{host}:{port}", "certificate-authority-data": data}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": USER, "cluster": cluster}],
        "users": [{"name": USER, "user": {"token": token}}],
        "contexts": [{"name": USER, "context": {"cluster": USER, "user": USER, "namespace": "default"}}],
        "current-context": USER,
    }


def default_path() -> Path:
    """Return the path of the kubeconfig if none is given: ``embedded/kubeconfig`` in the daemon's state folder."""
    state = os.environ.get("WHARFINGER_STATE_DIR")
    if state:
        return Path(state) / "embedded" / "kubeconfig"
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "wharfinger" / "embedded" / "kubeconfig"


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def read_token(path: Path) -> str:
    """Return the token in a file. Raises OSError, and ValueError if the file does not hold a token."""
    token = path.read_text().strip()
    if not token.isascii() or not token.isprintable() or " " in token or not 0 < len(token) <= MAX_TOKEN_CHARS:
        raise ValueError(f"{path} does not hold one token of at most {MAX_TOKEN_CHARS} ASCII characters")
    return token


def kept_token(path: Path) -> str:
    """Return the token in a file; if there is no file, create one with a new token. Raises OSError and ValueError."""
    try:
        return read_token(path)
    except FileNotFoundError:
        token = new_token()
        write_secret_file(path, f"{token}\n".encode())
        return token


def write_secret_file(path: Path, content: bytes) -> None:
    """Write a file with mode 0600, atomically; missing folders are created with mode 0700. Raises OSError."""
    missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700)
    # mkstemp creates the file with mode 0600, under a name that no other process can have prepared.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
