"""A warning that would be logged again and again, by a loop that retries: once, and then rarely."""

import logging

import trio


class RepeatedWarning:
    """Logs a text where it differs from the last one, or ``again_s`` after it was logged."""

    def __init__(self, log: logging.Logger, again_s: float) -> None:
        self._log = log
        self._again_s = again_s
        self._text = ""
        self._at = 0.0

    def warn(self, text: str) -> None:
        """Log it, unless it was logged a moment ago."""
        now = trio.current_time()
        if text != self._text or now - self._at >= self._again_s:
            self._log.warning("%s", text)
            self._text, self._at = text, now

    def clear(self) -> bool:
        """Forget what was logged; whether anything was."""
        had, self._text = bool(self._text), ""
        return had
