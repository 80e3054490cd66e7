"""The problems of a hook's configuration, collected and reported together."""

from collections.abc import Callable
from typing import Final, TypeVar

from wharfinger.formats.errors import FormatError
from wharfinger.hooks.errors import HookError

_MAX_PROBLEMS: Final = 20
_MAX_CHARS: Final = 300
_T = TypeVar("_T")


class HookConfigError(HookError):
    """The configuration of a hook is refused; ``problems`` are the reasons. Permanent: the hook must be changed."""

    def __init__(self, hook: str, problems: tuple[str, ...]) -> None:
        super().__init__(hook, f"its configuration is refused: {'; '.join(problems)}")
        self.problems = problems


class Problems:
    """The problems and warnings that were found so far in a hook's configuration, limited in number."""

    def __init__(self, hook: str) -> None:
        self._hook = hook
        self._found: list[str] = []
        self._left_out = 0
        self._warnings: list[str] = []

    def add(self, problem: str) -> None:
        """Add a reason to refuse the document."""
        if len(self._found) < _MAX_PROBLEMS:
            self._found.append(_cut(problem))
        else:
            self._left_out += 1

    def warn(self, warning: str) -> None:
        """Add a warning about a part of the document that is accepted."""
        if len(self._warnings) < _MAX_PROBLEMS:
            self._warnings.append(_cut(warning))

    def warnings(self) -> tuple[str, ...]:
        """Return the warnings, in the order in which they were found."""
        return tuple(self._warnings)

    def error(self) -> HookConfigError:
        """Return an error with the problems, and with the number of those that were left out."""
        more = (f"and {self._left_out} more",) if self._left_out else ()
        return HookConfigError(self._hook, (*self._found, *more))

    def raise_any(self) -> None:
        """Raise HookConfigError if there are any problems."""
        if self._found:
            raise self.error()

    def check(self, read: Callable[[], object]) -> None:
        """Call ``read``. If it raises a FormatError, add its message as a problem."""
        try:
            read()
        except FormatError as error:
            self.add(str(error))

    def value_of(self, read: Callable[[], _T], where: str, default: _T) -> _T:
        """Return the result of ``read``. If it raises a FormatError, add a problem at ``where``, and return ``default``."""
        try:
            return read()
        except FormatError as error:
            self.add(f"{where} is invalid: {error}")
            return default


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "…"
