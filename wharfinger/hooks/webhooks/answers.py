"""The answers that hooks write into response files (spec hook-protocol §3.4, §3.5). Pure: bytes in, an answer out.

The files are foreign data, so every part of an answer is checked and bounded before an API server gets it. An answer with a
fault is refused as a whole, and the error names the file and the fault.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    encode_json,
    find,
    find_list,
    find_str,
    type_name,
)
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.run_report import ADMISSION, CONVERSION
from wharfinger.kube.json_patch import MAX_OPERATIONS

MAX_ANSWER_BYTES: Final = 3 * 1024 * 1024
"""The limit of a response file; API servers refuse larger answers."""
MAX_MESSAGE: Final = 4096
"""The length in characters to which a message is cut."""
MAX_WARNINGS: Final = 20
MAX_WARNING: Final = 256
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_KEPT: Final = ("name", "namespace", "uid")
"""The metadata that a conversion must not change."""


@dataclass(frozen=True, slots=True)
class AdmissionAnswer:
    """The decision of a hook. ``patch`` is a JSON Patch; empty for no change."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[JsonValue, ...] = ()

    def response(self, uid: str) -> JsonObject:
        """Return the ``response`` of the AdmissionReview with this uid."""
        response: JsonObject = {"uid": uid, "allowed": self.allowed}
        if not self.allowed:
            response["status"] = {"code": 403, "reason": "Forbidden", "message": self.message}
        if self.warnings:
            response["warnings"] = [*self.warnings]
        if self.patch and self.allowed:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(encode_json([*self.patch])).decode()
        return response


def read_admission_answer(answers: Mapping[str, bytes], *, hook: str, mutating: bool) -> AdmissionAnswer:
    """Read the response file of an admission hook. The contract has two names for it (`ADMISSION`); the first one
    that has content in ``answers`` counts.

    Raises HookError if the file is empty or faulty, or if a hook that may not change the object returned a patch.
    """
    file, data = _content(answers, ADMISSION)
    try:
        answer = _object(data)
        allowed = answer.get("allowed")
        if not isinstance(allowed, bool):
            raise FormatError(f"allowed: expected true or false, found {type_name(allowed)}")
        patch = _patch(answer.get("patch"))
        if patch and not mutating:
            raise FormatError("patch: a validating hook must not change the object; bind it as kubernetesMutating")
        return AdmissionAnswer(
            allowed, _cut(find_str(answer, "message"), MAX_MESSAGE), _warnings(find_list(answer, "warnings")), patch
        )
    except FormatError as error:
        raise HookError(hook, f"its answer is refused: {error}", file=file) from error


def read_conversion_answer(
    answers: Mapping[str, bytes], *, hook: str, objects: Sequence[JsonObject], to_version: str
) -> tuple[JsonObject, ...]:
    """Read the response file of a conversion hook: the converted ``objects`` in their order, all in ``to_version``.

    Raises HookError if the hook reported a failure, or if its answer is empty or faulty. An answer is faulty if it has a
    different number of objects, an object in a different version, or an object whose kind, name, namespace or uid changed.
    """
    file, data = _content(answers, (CONVERSION,))
    try:
        answer = _object(data)
        if failure := find_str(answer, "failedMessage"):
            raise HookError(hook, f"it could not convert: {_cut(failure, MAX_MESSAGE)}")
        converted = tuple(as_object(obj, "convertedObjects") for obj in find_list(answer, "convertedObjects"))
        if len(converted) != len(objects):
            raise FormatError(f"convertedObjects: expected {len(objects)} objects, found {len(converted)}")
        for number, (before, after) in enumerate(zip(objects, converted, strict=True)):
            _check_converted(before, after, to_version, f"convertedObjects[{number}]")
    except FormatError as error:
        raise HookError(hook, f"its answer is refused: {error}", file=file) from error
    return converted


def _content(answers: Mapping[str, bytes], files: Sequence[str]) -> tuple[str, bytes]:
    return next(((file, answers[file]) for file in files if answers.get(file, b"").strip()), (files[-1], b""))


def _object(data: bytes) -> JsonObject:
    if not data.strip():
        raise FormatError("the file is empty; write an answer into it")
    return as_object(decode_json(data, max_bytes=MAX_ANSWER_BYTES, what="the answer"), "the answer")


def _warnings(found: Sequence[JsonValue]) -> tuple[str, ...]:
    texts: list[str] = []
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise FormatError(f"warnings[{number}]: expected a text, found {type_name(text)}")
        texts.append(_cut(text, MAX_WARNING))
    return tuple(texts[:MAX_WARNINGS])


def _patch(found: JsonValue) -> tuple[JsonValue, ...]:
    """Decode a patch, which is a list of operations in base64. Return its operations."""
    if found is None or found == "":
        return ()
    if not isinstance(found, str):
        raise FormatError(f"patch: expected a JSON Patch in base64, found {type_name(found)}")
    try:
        text = base64.b64decode(found, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"patch: expected a JSON Patch in base64: {error}") from error
    operations = decode_json(text, max_bytes=MAX_ANSWER_BYTES, what="patch")
    if not isinstance(operations, list):
        raise FormatError(f"patch: expected a list of operations, found {type_name(operations)}")
    if len(operations) > MAX_OPERATIONS:
        raise FormatError(f"patch: {len(operations)} operations, over the limit of {MAX_OPERATIONS}")
    for number, operation in enumerate(operations):
        kind, path = find(operation, "op"), find(operation, "path")
        if kind not in _OPERATIONS or not isinstance(path, str):
            raise FormatError(f"patch[{number}]: expected op ({', '.join(sorted(_OPERATIONS))}) and path")
    return tuple(operations)


def _check_converted(before: JsonObject, after: JsonObject, to_version: str, where: str) -> None:
    """Check a converted object as an API server does, because an error that is found here names the hook. Raises
    FormatError.
    """
    if (found := find_str(after, "apiVersion")) != to_version:
        raise FormatError(f"{where}.apiVersion: expected {to_version}, found {found[:80]!r}")
    if find(after, "kind") != find(before, "kind"):
        raise FormatError(f"{where}.kind: a conversion must not change it")
    for name in _KEPT:
        if (find(after, "metadata", name) or "") != (find(before, "metadata", name) or ""):
            raise FormatError(f"{where}.metadata.{name}: a conversion must not change it")


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
