"""What is wrong with a hook's configuration, gathered until it can be told at once."""

from collections.abc import Callable
from typing import Final, TypeVar

from wharfinger.formats.errors import FormatError
from wharfinger.hooks.errors import HookError

_MAX_PROBLEMS: Final = 20
_MAX_CHARS: Final = 300
_T = TypeVar("_T")


class HookConfigError(HookError):
    """The configuration of a hook is refused; ``problems`` has every reason. Permanent: only a changed hook helps."""

    def __init__(self, hook: str, problems: tuple[str, ...]) -> None:
        super().__init__(hook, f"its configuration is refused: {'; '.join(problems)}")
        self.problems = problems


class Problems:
    """What was found wrong so far, and what is only odd. As many as anybody reads are kept."""

    def __init__(self, hook: str) -> None:
        self._hook = hook
        self._found: list[str] = []
        self._left_out = 0
        self._warnings: list[str] = []

    def add(self, problem: str) -> None:
        """Note a reason to refuse the document."""
        if len(self._found) < _MAX_PROBLEMS:
            self._found.append(_cut(problem))
        else:
            self._left_out += 1

    def warn(self, warning: str) -> None:
        """Note what is let pass."""
        if len(self._warnings) < _MAX_PROBLEMS:
            self._warnings.append(_cut(warning))

    def warnings(self) -> tuple[str, ...]:
        """What was let pass, in the order it was found."""
        return tuple(self._warnings)

    def error(self) -> HookConfigError:
        """All that is wrong, as the error it is."""
        more = (f"and {self._left_out} more",) if self._left_out else ()
        return HookConfigError(self._hook, (*self._found, *more))

    def raise_any(self) -> None:
        """Raises HookConfigError where anything is wrong."""
        if self._found:
            raise self.error()

    def check(self, read: Callable[[], object]) -> None:
        """Note what ``read`` refuses with."""
        try:
            read()
        except FormatError as error:
            self.add(str(error))

    def value_of(self, read: Callable[[], _T], where: str, default: _T) -> _T:
        """What ``read`` gives; ``default`` where it refuses, which is noted under ``where``."""
        try:
            return read()
        except FormatError as error:
            self.add(f"{where} is invalid: {error}")
            return default


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "…"
