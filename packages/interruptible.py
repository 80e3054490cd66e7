"""A file that a worker thread reads and that stops reading when the task behind the thread is cancelled.

trio waits for a thread to end, also when the task that started it is cancelled. Work that reads a file all the way can take
long; read through this, it ends at its next read, with trio's own ``Cancelled``.
"""

import io
from typing import BinaryIO, Final

import trio

READ_BYTES: Final = 256 * 1024


def interruptible(file: io.BufferedReader) -> BinaryIO:
    """The rest of ``file``; each read of READ_BYTES looks for cancellation first, and may raise trio.Cancelled.

    Only in a thread of ``trio.to_thread.run_sync``. Closing the result leaves ``file`` open.
    """
    return io.BufferedReader(_Interruptible(file), READ_BYTES)


class _Interruptible(io.RawIOBase):
    def __init__(self, file: io.BufferedReader) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # io passes a memoryview
        trio.from_thread.check_cancelled()
        return self._file.readinto(buffer)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
