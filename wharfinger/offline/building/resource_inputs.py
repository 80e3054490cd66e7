"""The inputs of a ResourceSet: its own and those of its providers, combined by its strategy. Pure.

``Flatten`` lists the inputs of all providers one after the other. ``Permute`` makes every combination of one input from each
provider; a combination has each input under the name of its provider.

Source: the documentation of the Flux Operator's ResourceSet API.
"""

import itertools
import math
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject

MAX_PERMUTATIONS: Final = 10_000
_SEPARATORS: Final = re.compile(r"[\s!-/:-@[-`{-~]+")
_OTHERS: Final = re.compile(r"[^a-z0-9_]")


class Strategy(StrEnum):
    """The way in which the inputs of several providers are combined."""

    FLATTEN = "Flatten"
    PERMUTE = "Permute"


class InputsError(FormatError):
    """The inputs of a ResourceSet cannot be combined."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Something that provides inputs: the ResourceSet itself, or a ResourceSetInputProvider."""

    api_version: str
    kind: str
    namespace: str
    name: str
    inputs: tuple[JsonObject, ...]

    def with_itself(self) -> tuple[JsonObject, ...]:
        """Return the inputs, each with the built-in input ``provider``, which names this provider."""
        named: JsonObject = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
        }
        return tuple({**each, "provider": named} for each in self.inputs)


def input_id(text: str) -> str:
    """Return the ``id`` that the operator computes from a text."""
    return str(zlib.adler32(text.encode()))


def combined(
    providers: Iterable[Provider], strategy: Strategy, *, include_empty: bool = False
) -> tuple[JsonObject, ...]:
    """Return the combined inputs of all providers.

    ``Permute`` skips a provider without inputs. With ``include_empty``, such a provider makes the result empty instead.
    Raises InputsError for too many permutations, and for a name that cannot be a key.
    """
    if strategy is Strategy.FLATTEN:
        return tuple(each for provider in providers for each in provider.with_itself())
    used = [each for each in providers if each.inputs or include_empty]
    keys = [_key(each) for each in used]
    count = math.prod(len(each.inputs) for each in used) if used else 0
    if count > MAX_PERMUTATIONS:
        raise InputsError(
            f"the inputs have {count} permutations; at most {MAX_PERMUTATIONS} are built: "
            "reduce the inputs of the providers"
        )
    if not count:
        return ()
    return tuple(
        {
            **{key: chosen for key, (_, chosen) in zip(keys, choice, strict=True)},
            "id": input_id("/".join(f"{key}={number}" for key, (number, _) in zip(keys, choice, strict=True))),
        }
        for choice in itertools.product(*(tuple(enumerate(each.with_itself())) for each in used))
    )


def normalized(name: str) -> str:
    """Return a name as a key in templates: lower case, with one underscore for each run of spaces and punctuation."""
    words = _OTHERS.sub("", _SEPARATORS.sub("_", name.lower())).split("_")
    return "_".join(word for word in words if word)


def _key(provider: Provider) -> str:
    key = normalized(provider.name)
    if not key:
        raise InputsError(f"{provider.kind} {provider.name!r}: its name has no letter or digit; rename it")
    return key
