"""Real git repositories, and a server for them over smart HTTP on loopback, which is git's own ``http-backend``."""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.packages.support.charts import write


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, and return its output."""
    identity = (
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.com",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "tag.gpgsign=false",
    )
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(folder),
    }
    done = subprocess.run(
        ["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.strip()


def make_repository(folder: Path) -> Path:
    """Make an empty repository."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


def commit(folder: Path, files: dict[str, str], *tags: str, annotated: bool = False) -> str:
    """Commit files, point tags at the commit, and return the commit."""
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    for tag in tags:
        git(folder, "tag", "-f", *(("-a", "-m", tag) if annotated else ()), tag)
    return git(folder, "rev-parse", "HEAD")


@dataclass
class GitServer:
    """A running server; ``requests`` lists the received requests, each as its method and its path with query."""

    url: str = ""
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving_git(root: Path, *, login: str = "", to: str = "") -> Iterator[GitServer]:
    """Serve the repositories below a folder. ``login`` is the Authorization header to require, ``to`` a server to redirect to."""
    server = GitServer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_words: object) -> None:
            pass

        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _serve(self, body: bytes) -> None:
            server.requests.append(f"{self.command} {self.path}")
            if to:
                self.send_response(302)
                self.send_header("Location", to + self.path)
                self.end_headers()
                return
            if login and self.headers.get("Authorization") != login:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.end_headers()
                return
            self._answer(body)

        def _answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REMOTE_ADDR": "127.0.0.1",
            }
            done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=environment, check=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = [line.partition(": ") for line in head.decode().split("\r\n")]
            status = next((value for name, _, value in lines if name == "Status"), "200 OK")
            self.send_response(int(status.split()[0]))
            for name, _, value in lines:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
