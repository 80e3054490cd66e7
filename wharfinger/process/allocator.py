"""The settings of the C library's memory allocator (mallopt(3)) for a process that runs for months.

With its defaults, glibc creates separate heaps for threads, up to eight heaps per core. Little of the memory that is freed in
such a heap returns to the kernel. The larger the largest freed block was, the more free memory glibc keeps. After
`return_freed_memory`, all threads share one heap, and large blocks go back to the kernel as soon as they are freed.
"""

import ctypes
from typing import Final

LARGE: Final = 256 * 1024
"""The size in bytes from which a block gets a mapping of its own; also the most free memory that is kept at the end of the
heap.
"""
_TRIM_THRESHOLD: Final = -1  # M_* of glibc's malloc.h
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8


def return_freed_memory() -> None:
    """Make the memory allocator of this process return freed memory to the kernel. Call this before the first thread starts. If
    the C library has no mallopt, do nothing.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_ARENA_MAX, 1)
        library.mallopt(_TRIM_THRESHOLD, LARGE)
        library.mallopt(_MMAP_THRESHOLD, LARGE)
