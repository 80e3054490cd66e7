"""What every reader in this part raises: bad input is a :class:`FormatError`, and always permanent.

A reader that lets anything else out has a bug. Trying again does not help; changed input does.
"""


class FormatError(Exception):
    """Foreign data was refused; the message says what it was, where, and why."""


class ArchiveError(FormatError):
    """An archive was refused: not a tar, damaged, over a limit, or with an entry that must not reach the disk."""
