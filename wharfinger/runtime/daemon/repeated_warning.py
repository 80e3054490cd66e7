"""A warning of a loop that retries: it is logged once, and then repeated only rarely."""

import logging

import trio


class RepeatedWarning:
    """A logger of warnings. If a text is the same as the last one, it is logged again only after ``again_s`` seconds."""

    def __init__(self, log: logging.Logger, again_s: float) -> None:
        self._log = log
        self._again_s = again_s
        self._text = ""
        self._at = 0.0

    def warn(self, text: str) -> None:
        """Log the text, unless the last text was the same and was logged less than ``again_s`` seconds ago."""
        now = trio.current_time()
        if text != self._text or now - self._at >= self._again_s:
            self._log.warning("%s", text)
            self._text, self._at = text, now

    def clear(self) -> bool:
        """Forget the last text; return whether there was one."""
        had, self._text = bool(self._text), ""
        return had
