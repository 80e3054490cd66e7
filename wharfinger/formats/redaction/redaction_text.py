"""The removal of secrets from text that is printed: logs, errors, dumps, anything a user pastes into a ticket.

Secrets are found in two ways. Secrets that the caller passes are replaced everywhere, also in base64, percent-encoded or escaped
for JSON. If such a secret has several lines, each line of at least eight characters is replaced, too. Other credentials are
recognized by their form: user info in URLs, bearer tokens, JSON web tokens, private keys in PEM, ``password=…``, ``--token …``,
``"apiKey": "…"``, and YAML lines with such keys.
The second way cannot find all secrets, so a caller that knows a secret should pass it.

In two cases the text after such a key is kept, because it is no secret. The first case is an error about a file or an object
whose name ends like such a key (``…/kubeconfig: Permission denied``, ``Secret shop/db-password: not there``). The words of the
error must be in a fixed list, so that no secret can pass as an error. The second case is a path after the name of a file or of
the working folder (``KUBECONFIG=/…``, ``PWD=/…``).

Every pattern is linear: each run of text is scanned once from its start (hence the look-behinds), and every repetition that could
be retried is bounded.
"""

import base64
import errno
import json
import os
import re
from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import quote

from wharfinger.formats.redaction.sensitive_keys import is_sensitive_key, may_be_a_reference

MARK: Final = "***"
"""The text in place of a secret."""

SHORTEST_SECRET: Final = 4
"""The least length of a secret that is replaced. If every ``1`` or ``no`` were replaced, the marks would reveal the secret."""

_SHORTEST_LINE: Final = 8
_MOST_ROUNDS: Final = 8

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_USER_INFO: Final = re.compile(r"(?<![A-Za-z0-9+.\-])([A-Za-z][A-Za-z0-9+.\-]{0,30}://)[^\s/?#\"'<>]*@")
_WEB_TOKEN: Final = re.compile(r"(?<![\w\-])eyJ[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]{5,}(?:\.[A-Za-z0-9_\-]*)?")
_BEARER: Final = re.compile(r"(?i)\b(bearer[ \t]{1,4})[^\s\"',;\\*]{8,}")
_AUTHORIZATION: Final = re.compile(
    r"(?i)(?<![\w\-])([\w\-]{0,40}authorization\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?)"
    r"((?:basic|bearer|digest|negotiate|token)[ \t]{1,4})?[^\s\"'\\]+"
)
_KEY: Final = re.compile(r"(?<![\w.\-])(?P<key>[\w.\-]{1,80})\\{0,3}[\"']?[ \t]{0,4}(?P<sign>[:=])[ \t]{0,4}")
_FLAG: Final = re.compile(r"(?<![\w\-])(?P<key>--?[A-Za-z][\w\-]{0,80})[ \t]{1,4}(?!-)")
_QUOTED: Final = re.compile(
    r"""(?P<double>")(?P<a>(?:[^"\\\n]|\\.)*)" | (?P<single>')(?P<b>(?:[^'\n]|'')*)'"""
    r"""| (?P<escaped>\\{1,3}["'])(?P<c>(?:(?!(?P=escaped))[^\n])*)(?P=escaped)""",
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[^\s,;&\"'\\}\])]+")
_REST_OF_LINE: Final = re.compile(r"[^\n]*[^\s]")
_BLOCK_MARK: Final = re.compile(r"[|>][0-9+\-]{0,2}[ \t]{0,4}(?=\n)")
_BLOCK_LINE: Final = re.compile(r"\n(?P<indent>[ \t]*)[^\n]*")
_LINE_START: Final = re.compile(r"(?:^|\n)(?P<indent>[ \t+>#\-]*)[\"']?\Z")
_LOOK_BACK: Final = 64
_LONGEST_COMMON_WORD: Final = 4
_HARMLESS: Final = frozenset({"", "null", "true", "false", "~", "{}", "[]"})
_OF_FILES: Final = (
    "no such file",
    "not found",
    "does not exist",
    "already exists",
    "not a file",
    "not a folder",
    "not there",
)
_FILE_ERROR: Final = re.compile(
    "|".join(
        re.escape(words) for words in sorted({*map(os.strerror, errno.errorcode), *_OF_FILES}, key=len, reverse=True)
    )
    + r"(?![\w\-])",
    re.IGNORECASE,
)
_SYSTEM_CALL: Final = re.compile(
    r"(?:open|stat|lstat|read|write|mkdir|unlink|remove|rename|chmod|chown|readlink)(?= /)"
)
_END_OF_LINE: Final = re.compile(r"[ \t\r]*(?:\n|\Z)")
_ABSOLUTE: Final = re.compile(r"[\"']?~?/[^\s\"',;&=:]{0,4096}[\"']?(?![^\s,;:)\]}])")
_WORKING_FOLDER: Final = "PWD"
_VARIABLE_START: Final = re.compile(r"(?:^|\n)[ \t]*(?:export[ \t]+|declare[ \t]+-x[ \t]+)?\Z")
_FILE_KEY: Final = "kubeconfig"
_WORTH_A_LOOK: Final = re.compile(
    r"=|:(?![0-9a-f])|(?<!sha256):|(?<=[\w.\-]sha256):|--|(?<![\w\-])-[A-Za-z]|eyJ|(?i:bearer)"
)
"""A quick test: only a text with a match of this expression is searched with the other patterns.

The colon of a checksum (``sha256:2c26…``) does not match, because checksums are frequent in texts without a credential.
"""


class TextRedactor:
    """The redaction of `redact_text` for many texts, such as the lines of a log or the strings of an object.

    The secrets are prepared only once.
    """

    def __init__(self, secrets: Collection[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)}
        forms.discard(MARK)
        self._longest_first = sorted(forms, key=lambda form: (-len(form), form))

    def redact(self, text: str) -> str:
        """Return the text without the known secrets, and without anything that looks like a credential. A second run changes
        nothing.
        """
        for _ in range(_MOST_ROUNDS):
            before = text
            text = self._without_known(text)
            if _WORTH_A_LOOK.search(text):
                text = _without_patterns(text)
            if text == before:
                break
        return self._without_known(text)

    def _without_known(self, text: str) -> str:
        # A mark and the text beside it may spell a secret again; every round makes the text shorter.
        before = ""
        while before != text:
            before = text
            for form in self._longest_first:
                text = text.replace(form, MARK)
        return text


def redact_text(text: str, secrets: Collection[str] = ()) -> str:
    """Return the text without the given secrets, and without anything that looks like a credential. A second run changes nothing.

    Secrets of fewer than SHORTEST_SECRET characters are not replaced. Never raises.
    """
    return TextRedactor(secrets).redact(text)


def _forms(secret: str) -> Iterator[str]:
    yield secret
    raw = secret.encode("utf-8", "surrogatepass")
    yield base64.b64encode(raw).decode()
    yield base64.urlsafe_b64encode(raw).decode().rstrip("=")
    yield quote(raw, safe="")
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    for line in secret.splitlines():
        if len(line.strip()) >= _SHORTEST_LINE:
            yield line.strip()


def _without_patterns(text: str) -> str:
    text = _PRIVATE_KEY.sub(MARK, text)
    text = _USER_INFO.sub(rf"\g<1>{MARK}@", text)
    text = _WEB_TOKEN.sub(MARK, text)
    text = _AUTHORIZATION.sub(lambda match: f"{match[1]}{match[2] or ''}{MARK}", text)
    text = _BEARER.sub(rf"\g<1>{MARK}", text)
    return _without_flags(_without_pairs(text))


def _without_pairs(text: str) -> str:
    """Replace secrets in ``key=value`` and ``key: value``.

    A key that may also be a common word, and has a colon after it, counts only at the start of a line or of a JSON member.
    """
    parts: list[str] = []
    done = at = 0
    while match := _KEY.search(text, at):
        at = match.end()
        if not is_sensitive_key(match["key"]) or match["key"].lower().endswith("authorization"):
            continue
        before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
        line = _LINE_START.search(before) if len(before) < _LOOK_BACK or "\n" in before else None
        is_member = before.rstrip(" ").endswith(('"', "'", "{", ","))
        if match["sign"] == ":" and line is None and not is_member and _is_a_common_word(match["key"]):
            continue
        indent = len(line["indent"]) if line is not None and match["sign"] == ":" else None
        if _is_an_error(text, match, is_line=indent is not None) or _is_a_path(text, match):
            continue
        found = _value(text, at, indent)
        if found is None:
            continue
        replacement, end = found
        parts += [text[done:at], replacement]
        done = at = end
    return "".join(parts) + text[done:]


def _is_a_common_word(key: str) -> bool:
    """Return whether a key may be a common word, as in ``invalid token: …`` and ``pass: …``.

    Callers do not use this for a key at the start of a line or of a JSON member: there, even a common word is a key.
    """
    return len(key) <= _LONGEST_COMMON_WORD or may_be_a_reference(key)


def _is_an_error(text: str, pair: re.Match[str], *, is_line: bool) -> bool:
    """Return whether an error message follows the key and the colon. If so, the key does not mark a secret: it ends the name of
    the file or the object to which the error happened.
    """
    if pair["sign"] != ":":
        return False
    if text[max(0, pair.start() - 1) : pair.start()] == "/" and _SYSTEM_CALL.match(text, pair.end()):
        return True
    error = _FILE_ERROR.match(text, pair.end())
    # If the key is at the start of a line, these words may also be the beginning of a longer value.
    return error is not None and (not is_line or _END_OF_LINE.match(text, error.end()) is not None)


def _is_a_path(text: str, pair: re.Match[str]) -> bool:
    """Return whether the key names a file or the working folder, and the value is a path."""
    key, at = pair["key"], pair.end()
    path = _ABSOLUTE.match(text, at)
    if path is None:
        return False
    if key == _WORKING_FOLDER:
        before = text[max(0, pair.start() - _LOOK_BACK) : pair.start()]
        starts = _VARIABLE_START.search(before) if len(before) < _LOOK_BACK or "\n" in before else None
        return starts is not None and _END_OF_LINE.match(text, path.end()) is not None
    return key.lower().endswith(_FILE_KEY)


def _value(text: str, at: int, indent: int | None) -> tuple[str, int] | None:
    """Return the replacement of the value at ``at``, and the end of the value; None if the value is kept.

    ``indent`` is the indentation of a YAML line, None for any other text.
    """
    if quoted := _QUOTED.match(text, at):
        mark = quoted["double"] or quoted["single"] or quoted["escaped"]
        body = quoted["a"] or quoted["b"] or quoted["c"] or ""
        return None if body in _HARMLESS else (f"{mark}{MARK}{mark}", quoted.end())
    if indent is not None and (block := _BLOCK_MARK.match(text, at)):
        end = _block_end(text, block.end(), indent)
        return (f"{MARK}", end) if end > block.end() else None
    # A quote that is never closed may hide where the value ends.
    takes_line = indent is not None or text[at : at + 1] in {'"', "'", "\\"}
    plain = (_REST_OF_LINE if takes_line else _WORD).match(text, at)
    if plain is None or plain[0].rstrip(",") in _HARMLESS or plain[0].startswith(("{", "[")):
        return None
    return MARK, plain.end()


def _block_end(text: str, at: int, indent: int) -> int:
    """Return the end of the block that begins at ``at``; ``at`` itself if there is no such block.

    Each line of the block is blank, or is indented deeper than ``indent``. Blank lines at the end do not belong to the block.
    """
    end = at
    while line := _BLOCK_LINE.match(text, at):
        if line[0].strip() and len(line["indent"]) <= indent:
            break
        at = line.end()
        if line[0].strip():
            end = at
    return end


def _without_flags(text: str) -> str:
    """Replace the value of ``--password value`` on a command line."""
    parts: list[str] = []
    done = at = 0
    while match := _FLAG.search(text, at):
        at = match.end()
        if not is_sensitive_key(match["key"]) or _is_a_path(text, match):
            continue
        found = _value(text, at, None)
        if found is None:
            continue
        parts += [text[done:at], found[0]]
        done = at = found[1]
    return "".join(parts) + text[done:]
