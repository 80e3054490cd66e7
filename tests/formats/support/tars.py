"""Tars for tests: ordinary ones by Python's tarfile, and raw blocks for what no honest tool writes."""

import gzip
import io
import tarfile

BLOCK = 512
END = b"\0" * (2 * BLOCK)


def tar(*members: tuple[str, bytes | str | None] | tarfile.TarInfo, dialect: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar of ``(name, data)`` files, ``(name, None)`` folders, ``(name, "target")`` symbolic links, or TarInfos."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=dialect) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            name, data = member
            info = tarfile.TarInfo(name)
            if data is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
            else:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()


def hard_link(name: str, target: str) -> tarfile.TarInfo:
    """A hard link."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.LNKTYPE, target
    return info


def gz(data: bytes) -> bytes:
    """One gzip member, the same bytes each time."""
    return gzip.compress(data, mtime=0)


def padded(data: bytes) -> bytes:
    """Data filled up to whole blocks."""
    return data + b"\0" * (-len(data) % BLOCK)


def octal(value: int, width: int) -> bytes:
    """A number field."""
    return b"%0*o\0" % (width - 1, value)


def header(
    name: bytes = b"file",
    *,
    flag: bytes = b"0",
    size: int | bytes = 0,
    target: bytes = b"",
    mode: int | bytes = 0o644,
    magic: bytes = b"ustar\x0000",
    prefix: bytes = b"",
) -> bytes:
    """One header block with a right checksum, whatever is in it."""
    block = b"".join(
        [
            name.ljust(100, b"\0"),
            mode if isinstance(mode, bytes) else octal(mode, 8),
            octal(0, 8) * 2,
            size if isinstance(size, bytes) else octal(size, 12),
            octal(0, 12),
            b" " * 8,
            flag,
            target.ljust(100, b"\0"),
            magic,
            b"\0" * 32 * 2,
            octal(0, 8) * 2,
            prefix.ljust(155, b"\0"),
            b"\0" * 12,
        ]
    )
    assert len(block) == BLOCK
    return with_checksum(block)


def with_checksum(block: bytes) -> bytes:
    """The header block with its checksum put right."""
    blank = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(blank) + block[156:]


def pax_record(key: str, value: str) -> bytes:
    """One ``length key=value`` record."""
    rest = f" {key}={value}\n".encode()
    length = len(rest)
    while length != len(str(length).encode()) + len(rest):
        length = len(str(length).encode()) + len(rest)
    return str(length).encode() + rest


def pax(body: bytes, *, flag: bytes = b"x") -> bytes:
    """A pax header with that body."""
    return header(b"PaxHeaders/x", flag=flag, size=len(body)) + padded(body)


def gnu_long(text: bytes, *, flag: bytes = b"L") -> bytes:
    """A GNU long name (``L``) or long target (``K``)."""
    return header(b"././@LongLink", flag=flag, size=len(text) + 1, magic=b"ustar  \0") + padded(text + b"\0")
