"""Tars for tests: ordinary ones from Python's tarfile, and raw blocks that usual tools never write."""

import gzip
import io
import tarfile

BLOCK = 512
END = b"\0" * (2 * BLOCK)


def tar(*members: tuple[str, bytes | str | None] | tarfile.TarInfo, dialect: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar of files ``(name, data)``, folders ``(name, None)``, symbolic links ``(name, "target")`` and TarInfos."""
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
    """Return a hard link."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.LNKTYPE, target
    return info


def gz(data: bytes) -> bytes:
    """Return the data as one gzip member. Equal data always results in equal bytes."""
    return gzip.compress(data, mtime=0)


def padded(data: bytes) -> bytes:
    """Return the data, padded to whole blocks."""
    return data + b"\0" * (-len(data) % BLOCK)


def octal(value: int, width: int) -> bytes:
    """Return a number as a field of a tar header: in octal digits, with a final null byte."""
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
    """Return a header block with any content and with a correct checksum."""
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
    """Return the header block with its checksum corrected."""
    blank = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(blank) + block[156:]


def pax_record(key: str, value: str) -> bytes:
    """Return one ``length key=value`` record of a pax header."""
    rest = f" {key}={value}\n".encode()
    length = len(rest)
    while length != len(str(length).encode()) + len(rest):
        length = len(str(length).encode()) + len(rest)
    return str(length).encode() + rest


def pax(body: bytes, *, flag: bytes = b"x") -> bytes:
    """Return a pax header with this body."""
    return header(b"PaxHeaders/x", flag=flag, size=len(body)) + padded(body)


def gnu_long(text: bytes, *, flag: bytes = b"L") -> bytes:
    """Return a GNU long name (``L``) or long target (``K``)."""
    return header(b"././@LongLink", flag=flag, size=len(text) + 1, magic=b"ustar  \0") + padded(text + b"\0")
