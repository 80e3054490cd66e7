"""Commands of the cluster part. What serves is imported when it is asked to serve: ``--help`` stays quick."""

import argparse
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wharfinger.cluster.control_plane.serving import Address

TOKEN_BYTES: Final = 32
MAX_TOKEN_CHARS: Final = 512


def add_control_plane(parser: argparse.ArgumentParser) -> None:
    """``wharfinger control-plane``: arguments and handler."""
    from wharfinger.cluster.control_plane.kubeconfig_file import default_path  # noqa: PLC0415 - see the module's story

    parser.description = (
        "Serve an embedded Kubernetes control plane: kubectl, helm and the daemon work against it. "
        "Its state is in memory and lost when it stops."
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:0", metavar="ADDRESS:PORT", help="where to listen; port 0 takes a free one"
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=default_path(),
        metavar="PATH",
        help="the kubeconfig to write, readable by you only (default: %(default)s)",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="PATH",
        help="use the token in this file; without it a new one is drawn at each start",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address other machines can reach; the connection is not encrypted",
    )
    parser.set_defaults(handler=_control_plane)


def _control_plane(args: argparse.Namespace) -> int:
    from wharfinger.cluster.control_plane.serving import parse_address  # noqa: PLC0415

    try:
        address = parse_address(args.listen)
    except ValueError as error:
        return _fail(f"--listen: {error}", code=2)
    if not address.loopback and not args.allow_remote:
        return _fail(
            f"--listen {args.listen}: other machines could reach it, and nothing is encrypted; "
            "listen on 127.0.0.1, or say --allow-remote",
            code=2,
        )
    try:
        token = secrets.token_urlsafe(TOKEN_BYTES) if args.token_file is None else _read_token(args.token_file)
    except (OSError, ValueError) as error:
        return _fail(f"--token-file: {error}; give a file that holds one token and that you can read")
    return _serve(address, args.kubeconfig, token)


def _serve(address: "Address", kubeconfig: Path, token: str) -> int:
    import trio  # noqa: PLC0415

    from wharfinger.cluster.control_plane.serving import (  # noqa: PLC0415
        ControlPlaneStartError,
        run_until_signalled,
    )

    def say(line: str) -> None:
        print(line, flush=True)

    try:
        trio.run(run_until_signalled, address, kubeconfig, token, say)
    except ControlPlaneStartError as error:
        return _fail(f"{error}; choose another --listen or --kubeconfig")
    return 0


def _read_token(path: Path) -> str:
    token = path.read_text().strip()
    if not token.isascii() or not token.isprintable() or " " in token or not 0 < len(token) <= MAX_TOKEN_CHARS:
        raise ValueError(f"{path} does not hold one token of at most {MAX_TOKEN_CHARS} ASCII characters")
    return token


def _fail(message: str, *, code: int = 1) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
