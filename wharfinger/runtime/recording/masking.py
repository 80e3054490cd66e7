"""The masking of secrets in texts before they are recorded.

The tasks that report texts have already masked them. The masking in this module is a second line of defense: it masks the
known secrets of the package, and every text that looks like a credential. The same text is masked in the same way in all
records that build on each other, because a state may repeat the text of an event, and both must still be equal in a replay. If
a new secret would change the masked form of an earlier text, the package's texts are `renewed`: the next record of each of its
state machines has the whole state again, instead of continuing from the last event.

A state machine may compare texts, so two texts that differ only in a secret must not become equal. So each masked part has a
number, and the same secret part gets the same number each time: ``cannot log in with ***1``. (Only after MOST_NUMBERS numbers
does the numbering begin again.) The number does not reveal anything about the secret.

Known secrets are not forgotten while the package exists, because a state may still contain the old value of a secret.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.redaction.redaction_text import MARK, SHORTEST_SECRET, TextRedactor

MOST_TEXTS: Final = 2_000
"""The limit on the remembered texts of one package. If it is exceeded, all texts of the package are forgotten before the next
records are written.
"""
MOST_NUMBERS: Final = 100_000
"""The limit on the number of different masked parts. Each gets a number; beyond the limit, all numbers are assigned anew."""
_NUMBERED: Final = re.compile(re.escape(MARK) + r"([0-9]{1,9})")


@dataclass(slots=True)
class Renewals:
    """The state that the maskings of all packages share.

    ``count`` grows each time that a text of any package may get another masked form from now on. ``numbers`` maps each masked
    part of a text to the number that stands for it. ``full`` has the maskings that keep too many texts.
    """

    count: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    full: "list[Masking]" = field(default_factory=list)

    def trim(self) -> None:
        """Make each masking that keeps more than MOST_TEXTS texts forget them. Call this between records only: a record may
        have any number of texts, and each of them must be masked in the same way until the record is complete.
        """
        full, self.full = self.full, []
        for masking in full:
            if len(masking.texts()) > MOST_TEXTS:  # the masking may have forgotten its texts meanwhile
                masking.forget()

    def number(self, hidden: str) -> int:
        """Return the number that stands for a masked part of a text."""
        if (known := _NUMBERED.fullmatch(hidden)) is not None:  # the part is the mark of an earlier masking
            return int(known[1])
        if len(self.numbers) >= MOST_NUMBERS:
            self.numbers.clear()
            self.count += 1
        return self.numbers.setdefault(hidden, len(self.numbers) + 1)


class Masking:
    """The masked texts of one package. ``secrets`` returns its known secrets; it is called for each new text."""

    __slots__ = ("_all", "_known", "_redactor", "_secrets", "_texts", "clean", "renewed")

    def __init__(self, secrets: Callable[[], tuple[str, ...]], renewals: Renewals) -> None:
        self._secrets = secrets
        self._all = renewals
        self._known: frozenset[str] = frozenset()
        self._redactor = TextRedactor()
        self._texts: dict[str, str] = {}
        self.clean: set[str | None] = {None}
        """The texts that are known to contain no secret. The set also contains None, because a text of a record may be None; so
        one call of ``issuperset`` checks all texts of a record.
        """
        self.renewed = 0
        """The number of times that the texts of this package were forgotten: because a new secret changes the masked form of a
        text, or because there were too many texts.
        """

    def texts(self) -> Mapping[str, str]:
        """Return the masked texts, by their originals. Later texts are added to this mapping, but no text is removed from it."""
        return self._texts

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        if text in self.clean:
            return text
        found = self._texts.get(text)
        return self._mask(text) if found is None else found

    def _mask(self, text: str) -> str:
        if len(text) < SHORTEST_SECRET:
            if len(self.clean) < 2 * MOST_TEXTS:
                self.clean.add(text)
            return text
        secrets = self._secrets()
        if not self._known.issuperset(secrets):
            self._known = self._known.union(secrets)
            self._redactor = TextRedactor(self._known)
            if any(self._masked(each) != masked for each, masked in self._texts.items()):
                self.forget()
        if len(self._texts) == MOST_TEXTS:
            self._all.full.append(self)
        masked = self._texts[text] = self._masked(text)
        if masked == text:
            self.clean.add(text)
        return masked

    def _masked(self, text: str) -> str:
        """Return the text with a numbered mark in place of each part that is secret."""
        redacted = self._redactor.redact(text)
        first, *others = redacted.split(MARK)
        result, start = first, len(first)
        for place, piece in enumerate(others):
            # The masked part is everything before the next piece that was kept.
            last = place == len(others) - 1
            end = len(text) - len(piece) if last else text.find(piece, start) if piece else start
            hidden = text[start:end] if end >= start else text
            if hidden == MARK and piece[:1].isdigit():  # the text was already masked
                result += f"{MARK}{piece}"
            else:
                result += f"{MARK}{self._all.number(hidden)}{piece}"
            start = max(end, start) + len(piece)
        return result

    def forget(self) -> None:
        """Forget all masked texts of this package."""
        self._texts = {}  # a new mapping, because another thread may still read the old one
        self.clean.clear()  # not a new set, because the writer uses this one
        self.clean.add(None)
        self.renewed += 1
        self._all.count += 1


class Derived:
    """The masking of steps of a state machine that are recorded together. It masks the texts in the events of these steps, and
    the texts that the state machine made from the events.

    If a text that the state machine made contains a text of an event, that part is replaced by its masked form. So a replay,
    which has only the masked form of the event, makes the same text.
    """

    __slots__ = ("_masking", "masked")

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self.masked: list[tuple[str, str]] = []
        """Each text in the events that contains a secret, with the masked form of the text."""

    def __call__(self, text: str) -> str:
        """Return a text of an event without secrets."""
        masked = self._masking(text)
        if masked != text:
            self.masked.append((text, masked))
        return masked

    def derived(self, text: str) -> str:
        """Return a text with its secrets masked. The text was made from the state or from the effects of a state machine."""
        for original, masked in self.masked:
            text = text.replace(original, masked)
        return self._masking(text)
