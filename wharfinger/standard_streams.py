"""Standard streams that are closed, or that cannot be written because the disk is full or the reader of a pipe has ended."""

import io
import os
import sys
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class StdoutError(Exception):
    """A command's output cannot be written. This is not an OSError, because argparse ignores OSErrors when it prints help."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the answer cannot be written to stdout: {why}")


class _ClosedStdout(io.TextIOBase):
    """The replacement of a standard output that was closed before the program started: each write to it raises StdoutError."""

    encoding = "utf-8"

    def write(self, _text: str, /) -> int:
        raise StdoutError("it is closed")


class _StdoutFile(io.FileIO):
    """The raw file of standard output. A failed write raises BrokenPipeError if the reader has ended, else StdoutError."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StdoutError(error.strerror or str(error)) from error


def name_stdout_in_errors() -> None:
    """Make failed writes to standard output, such as on a full disk, raise StdoutError."""
    old = sys.stdout
    if not isinstance(old, io.TextIOWrapper) or old is not sys.__stdout__:
        return
    raw = _StdoutFile(old.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        cast("BinaryIO", raw) if old.write_through else io.BufferedWriter(raw),
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )


def open_closed_streams() -> None:
    """Open the standard streams that the parent process closed.

    Python sets such a stream to None. Without this function, the next opened file or socket would get the stream's descriptor,
    and a child process would use this file as its output. Afterwards, logs to a closed stderr are dropped, a closed stdin is
    empty, and a write to a closed stdout raises StdoutError.
    """
    streams = (sys.stdin, sys.stdout, sys.stderr)
    closed = {number for number, stream in enumerate(streams) if stream is None}
    for number in closed:
        descriptor = os.open(os.devnull, os.O_RDWR)  # opens the lowest free descriptor, which usually is this one
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
    if 0 in closed:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lives
    if 1 in closed:
        sys.stdout = _ClosedStdout()
    if 2 in closed:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def drop_stdout() -> None:
    """Drop the buffered output. Otherwise Python would try to write it at exit, and the failure would change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
