"""Logins from files with changing content: projected tokens of service accounts, and tokens that a cloud's agent writes.

The file is read whenever a connection is opened, and once more after a registry has refused the token. So a rotated token is used
immediately. No message quotes the content of the file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.packages.errors import RegistryError
from wharfinger.packages.registry.credentials import Credentials

MAX_TOKEN: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a token. With a user name, the token is the user's password. Without a user name, it is an identity token,
    which the registry's token realm exchanges for an access token.
    """

    path: Path
    username: str = ""


async def read_token_file(file: TokenFile, realms: tuple[str, ...] = ()) -> Credentials:
    """Return a login with the token that the file contains now. Raises RegistryError."""
    try:
        token = (await trio.to_thread.run_sync(_content, file.path)).decode("ascii").strip()
    except OSError as error:
        raise RegistryError(
            f"{file.path}: the token file cannot be read: {error.strerror}; check the volume that projects it",
            transient=True,
        ) from error
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable():
        raise RegistryError(
            f"{file.path}: expected a file with one token; check the program that writes it", transient=True
        )
    if file.username:
        return Credentials(file.username, token, realms=realms)
    return Credentials("", "", token, realms)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_TOKEN + 1)
    return data if len(data) <= MAX_TOKEN else b""
