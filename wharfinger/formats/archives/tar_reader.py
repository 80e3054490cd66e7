"""The entries of a tar stream: ustar, GNU and pax headers, each of bounded size.

Python's ``tarfile`` reads a pax header of any size into memory, follows chains of them by recursion, unpacks sparse files to
whatever size they claim, and reads fields that other readers do not. This reader supports only the types of entries that packages
have (files, folders, links), and reads them like Go's reader, which Helm and the registries use. Everything else is refused with
an error that names it.
"""

import enum
import re
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.archives.archive_stream import ArchiveStream
from wharfinger.formats.encodable import quoted
from wharfinger.formats.errors import ArchiveError

BLOCK: Final = 512
_MOST_EXTENSIONS: Final = 8
"""The maximum number of extension headers (pax, GNU long names) before one entry; two are usual."""


class Kind(enum.Enum):
    """The types of entries that are read; every other type is refused."""

    FILE = "file"
    DIRECTORY = "folder"
    SYMLINK = "symbolic link"
    HARD_LINK = "hard link"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tar archive.
    ``size`` is the size of the data that follows (0 except for files); ``target`` is the target of a link, and empty for files
    and folders.
    """

    kind: Kind
    name: str
    target: str
    size: int
    is_executable: bool


@dataclass(frozen=True, slots=True)
class _Header:
    type: bytes
    name: bytes
    target: bytes
    size: int
    mode: int


@dataclass(slots=True)
class _Extensions:
    """The fields in pax and GNU headers for the entry that follows them; pax takes precedence over GNU."""

    name: bytes | None = None
    target: bytes | None = None
    pax: dict[str, str] | None = None

    def text(self, key: str) -> str | None:
        return (self.pax or {}).get(key)


_KINDS: Final = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,  # contiguous: a file with a preferred place on the disk
    b"5": Kind.DIRECTORY,
    b"2": Kind.SYMLINK,
    b"1": Kind.HARD_LINK,
}
_REFUSED: Final = {
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a FIFO",
    b"S": "a sparse file",
    b"D": "a GNU folder listing",
    b"M": "a part of a multi-volume file",
    b"N": "a list of renames",
    b"V": "a volume label",
}


class TarReader:
    """A reader of the entries of ``stream``, one by one; read the data of a file before the next entry."""

    def __init__(self, stream: ArchiveStream, *, what: str, max_header_bytes: int) -> None:
        self._stream = stream
        self._what = what
        self._max_header_bytes = max_header_bytes

    def next_entry(self) -> Entry | None:
        """Return the next entry, None at the end. Raises ArchiveError."""
        found = _Extensions()
        for _ in range(_MOST_EXTENSIONS + 1):
            header = self._next_header(found)
            if header is None:
                return None
            match header.type:
                case b"x" | b"X":
                    found.pax = {**(found.pax or {}), **self._pax(header)}
                case b"g":
                    self._global_pax(header)
                case b"L":
                    found.name = self._long(header)
                case b"K":
                    found.target = self._long(header)
                case _:
                    return self._entry(header, found)
        raise ArchiveError(f"{self._what}: more than {_MOST_EXTENSIONS} extension headers in a row")

    def skip_padding(self, size: int) -> None:
        """Skip the bytes that fill the last block after ``size`` bytes of data."""
        if size % BLOCK:
            self._stream.read_exactly(BLOCK - size % BLOCK)

    def _next_header(self, found: _Extensions) -> _Header | None:
        block = self._stream.read_up_to(BLOCK)
        if not block and self._stream.is_gzip and found == _Extensions():
            return None  # no end mark, but the gzip trailer has shown that nothing is missing
        if len(block) < BLOCK:
            raise ArchiveError(f"{self._what}: truncated: it ends without an end mark")
        if not block.strip(b"\0"):
            if found != _Extensions():
                raise ArchiveError(f"{self._what}: truncated: an extension header without its entry")
            if self._stream.read_up_to(BLOCK).strip(b"\0"):
                raise ArchiveError(f"{self._what}: damaged: data follows a lone block of zeros")
            return None
        return _parse(block, self._what)

    def _body(self, header: _Header) -> bytes:
        if header.size > self._max_header_bytes:
            raise ArchiveError(
                f"{self._what}: an extension header of {header.size} bytes; the limit is {self._max_header_bytes}"
            )
        body = self._stream.read_exactly(header.size)
        self.skip_padding(header.size)
        return body

    def _long(self, header: _Header) -> bytes:
        return self._body(header).partition(b"\0")[0]

    def _pax(self, header: _Header) -> dict[str, str]:
        records = _pax_records(self._body(header), self._what)
        if any(key.startswith("GNU.sparse.") for key in records):
            raise ArchiveError(f"{self._what}: has a sparse file; only plain files are read")
        return records

    def _global_pax(self, header: _Header) -> None:
        """Skip the comments in a global header (git writes its commit there), and refuse a name or size that would apply to all
        following entries.
        """
        for key in sorted({"path", "linkpath", "size"} & self._pax(header).keys()):
            raise ArchiveError(f"{self._what}: a global header sets {key!r} for all entries, which is not supported")

    def _entry(self, header: _Header, found: _Extensions) -> Entry:
        name = found.text("path") or self._text(header.name if found.name is None else found.name)
        kind = _KINDS.get(header.type)
        if kind is None:
            described = _REFUSED.get(header.type, f"of unknown type {header.type.decode('latin-1')!r}")
            raise ArchiveError(f"{self._what}: entry {name!r} is {described}; only files, folders and links are read")
        target = ""
        if kind in {Kind.SYMLINK, Kind.HARD_LINK}:
            target = found.text("linkpath") or self._text(header.target if found.target is None else found.target)
        if kind is Kind.FILE and name.endswith("/"):
            kind = Kind.DIRECTORY
        size = header.size
        if written := found.text("size"):
            if not re.fullmatch(r"[0-9]{1,19}", written, re.ASCII):
                raise ArchiveError(
                    f"{self._what}: entry {name!r} has a size of {written[:40]!r}, which is not a number"
                )
            size = int(written)
        return Entry(kind, name, target, size if kind is Kind.FILE else 0, bool(header.mode & 0o111))

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise ArchiveError(f"{self._what}: entry {quoted(raw, 80)} has a name that is not UTF-8") from error


def _parse(block: bytes, what: str) -> _Header:
    """Read one header block (POSIX.1-2017 pax, ``ustar`` interchange format). Raises ArchiveError."""
    checksum = _number(block[148:156], what)
    blanked = block[:148] + b" " * 8 + block[156:]
    # Old programs computed the checksum from signed bytes.
    if checksum not in {sum(blanked), sum(byte - 256 if byte > 127 else byte for byte in blanked)}:
        raise ArchiveError(f"{what}: not a tar, or damaged: a header's checksum is wrong")
    name = _field(block[:100])
    if block[257:265] == b"ustar\x0000":
        prefix = _field(block[345:500])
        name = prefix + b"/" + name if prefix else name
    size = _number(block[124:136], what)
    return _Header(block[156:157], name, _field(block[157:257]), size, _number(block[100:108], what))


def _field(raw: bytes) -> bytes:
    return raw.partition(b"\0")[0]


def _number(raw: bytes, what: str) -> int:
    """Read an octal number, or a non-negative number in GNU's base 256 (the first byte is 0x80)."""
    if raw[0] == 0x80:
        return int.from_bytes(raw[1:], "big")
    digits = raw.strip(b" \0")
    if not re.fullmatch(rb"[0-7]*", digits):
        raise ArchiveError(f"{what}: not a tar, or damaged: {quoted(raw, 16)} is not a number")
    return int(digits or b"0", 8)


_PAX_LENGTH: Final = re.compile(rb"([1-9][0-9]{0,8}) ")


def _pax_records(body: bytes, what: str) -> dict[str, str]:
    r"""Read records ``<length> <key>=<value>\n``; the length counts the whole record."""
    records: dict[str, str] = {}
    at = 0
    while at < len(body):
        match = _PAX_LENGTH.match(body, at)
        end = at + int(match[1]) if match else at
        if match is None or end > len(body) or end <= match.end() or body[end - 1 : end] != b"\n":
            raise ArchiveError(f"{what}: damaged pax header")
        key, equals, value = body[match.end() : end - 1].partition(b"=")
        at = end
        if not equals or not key:
            raise ArchiveError(f"{what}: damaged pax header")
        try:
            records[key.decode()] = value.decode()
        except UnicodeDecodeError as error:
            if key in {b"path", b"linkpath"}:
                raise ArchiveError(f"{what}: a pax header has a name that is not UTF-8") from error
    return records
