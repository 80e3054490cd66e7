"""Expressions in CEL, as in Kubernetes: compiled and evaluated by a library, to which `functions` adds what is missing.

Only a worker process imports this module (:mod:`~wharfinger.formats.cel.worker`), because the library holds the interpreter's
lock while it works.

The library limits an expression to 100,000 characters and 32 levels of nesting, and all loops of one evaluation together to
10,000 steps. The library limits neither memory nor time.

An expression is checked against the type of ``self`` if ``self`` is text, a boolean, a list or an object. Numbers, and the
members and items of ``self``, have a dynamic type: Kubernetes allows comparing numbers of different types, which the library
supports only at run time.

The library's error messages may quote the value, which may be a secret. So only harmless parts are passed on
(:func:`error_text`): the kind of the error, types, and names that are in the expression anyway.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Protocol, cast

from cel_expr_python import cel

from wharfinger.formats.cel.functions import FUNCTIONS, INDEXES, MATCHES, STRING_FUNCTIONS, Overload, without_groups
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue

MAX_STEPS: Final = 10_000
"""The CEL library's limit on the steps of all loops in one evaluation. Callers of the library cannot change it."""

_EXTENSIONS: Final = ("lists", "sets", "math", "optional", "two-var-comprehensions", "encoders", "bindings")
_SELF_TYPES: Final = {"string": "string", "boolean": "bool", "array": "list<dyn>", "object": "map<string, dyn>"}
_SAMPLES: Final[Mapping[str, JsonValue]] = {"string": "", "boolean": False, "array": [], "object": {}}
_OLD_SELF: Final = re.compile(r"undeclared reference to 'oldSelf['.]")
_OPTIONAL_OLD: Final = "cel.bind(oldSelf, hasOld__ ? optional.of(old__) : optional.none(), (\n%s\n))"
_INDEX_CALL: Final = re.compile(r"\b(?:i|lastI)ndexOf\s*\(")
_OWN_ERROR: Final = "rule function: "
_KEY: Final = re.compile(r'Key not found in map : "?(.*?)"?\Z', re.DOTALL)
_OVERLOAD: Final = re.compile(r"No matching overloads found : ([\w.@?!%&|<>=+*/:\[\]-]+\([\w.*, <>-]*\))")
_HARMLESS: Final = ("divide by zero", "modulus by zero", "integer overflow", "unsigned integer overflow")
_POSITION: Final = re.compile(r"ERROR: <input>:(-?[0-9]+):(-?[0-9]+): (.*)")


class CelError(FormatError):
    """An expression does not compile, or has no result for a value. The message never quotes the value."""


class OutOfMemoryError(CelError):
    """A compilation or an evaluation takes more memory than the process may use."""


class _Type(Protocol):
    def name(self) -> str: ...


class _Value(Protocol):
    def type(self) -> _Type: ...

    def plain_value(self) -> object: ...


class _Compiled(Protocol):
    def eval(self, *, data: Mapping[str, object]) -> _Value: ...

    def return_type(self) -> _Type: ...


class _Function(Protocol):
    def __call__(self, *arguments: object) -> object: ...


class _Environment(Protocol):
    def compile(self, expression: str) -> _Compiled: ...


class Expression:
    """A compiled expression, made by :func:`compile_expression`. ``uses_old`` is True if the expression refers to ``oldSelf``."""

    def __init__(self, text: str, compiled: _Compiled, *, uses_old: bool, optional_old: bool) -> None:
        self.text = text
        self.uses_old = uses_old
        self._optional_old = optional_old
        self._compiled = compiled

    def evaluate(self, value: JsonValue, old: JsonValue) -> object:
        """Evaluate the expression, and return the result as a plain Python value. ``value`` is the value of ``self``, ``old``
        that of ``oldSelf``; ``old`` is None if there was no old value.

        Raises CelError, OutOfMemoryError.
        """
        data: dict[str, object] = {"self": value}
        if self._optional_old:
            data |= {"old__": old, "hasOld__": old is not None}
        elif self.uses_old:
            data["oldSelf"] = old
        return _evaluated(self._compiled, data, self.text)


def compile_expression(text: str, *, self_type: str, result: str, optional_old: bool = False) -> Expression:
    """Compile an expression whose ``result`` is "bool" or "string".

    ``self_type`` is the type of ``self`` in the schema, "" for any type. With ``optional_old``, ``oldSelf`` has CEL's optional
    type. Raises CelError.
    """
    with_indexes = _INDEX_CALL.search(text) is not None
    declared = _SELF_TYPES.get(self_type, "dyn")
    uses_old = False
    try:
        compiled = _compiled(_environment(declared, with_indexes, ()), text)
    except CelError as error:
        if not _OLD_SELF.search(str(error.__cause__)):
            raise
        uses_old = True
        old_type = "dyn" if optional_old else declared
        compiled = _compiled(_environment(declared, with_indexes, (("oldSelf", old_type),)), text)
    if uses_old and optional_old:
        # The text has compiled alone (above), so it cannot close the parentheses around it here.
        names = (("old__", "dyn"), ("hasOld__", "bool"))
        compiled = _compiled(_environment(declared, with_indexes, names), _OPTIONAL_OLD % text)
    if compiled.return_type().name().lower() not in {result, "dyn"}:
        raise CelError(f"returns {compiled.return_type().name().lower()}, not {result}")
    expression = Expression(text, compiled, uses_old=uses_old, optional_old=uses_old and optional_old)
    _refuse_unplanned(expression, _SAMPLES.get(self_type))
    return expression


def _refuse_unplanned(expression: Expression, sample: JsonValue) -> None:
    """Evaluate the expression on a sample, because the library finds some unknown names only in the first run."""
    try:
        expression.evaluate(sample, sample)
    except CelError as error:
        if isinstance(error.__cause__, RuntimeError) and "reference resolve step" in str(error.__cause__):
            raise CelError("uses an unknown macro or function") from error


def _compiled(environment: _Environment, text: str) -> _Compiled:
    try:
        return environment.compile(text)
    except (RuntimeError, ValueError, TypeError) as error:
        raise CelError(_compile_message(str(error))) from error
    except MemoryError as error:
        raise OutOfMemoryError("takes too much memory to compile") from error


def _compile_message(message: str) -> str:
    found = _POSITION.search(message)
    if found is None:
        return message.partition("\n")[0].partition(" [")[0].partition(": ")[2] or "does not compile"
    line, column, why = found.groups()
    place = f"{line}:{column}: " if int(line) > 0 else ""
    return place + why.replace(" (in container '')", "").partition(" [")[0]


def _evaluated(compiled: _Compiled, data: Mapping[str, object], text: str) -> object:
    try:
        value = compiled.eval(data=data)
        plain = value.plain_value()
        if value.type().name() == "ERROR":
            raise CelError(error_text(str(plain), text))
    except MemoryError as error:
        raise OutOfMemoryError("takes too much memory") from error
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise CelError(error_text(str(error), text)) from error
    return plain


def error_text(message: str, expression: str) -> str:
    """Return the library's error message of an evaluation, without anything that may come from a value."""
    if "Iteration budget exceeded" in message:
        return f"takes more than {MAX_STEPS} steps; loop over fewer items"
    key = _KEY.search(message)
    if key is not None:
        return f"no such key: {key[1]}" if key[1] and key[1] in expression else "no such key"
    if _OWN_ERROR in message:
        return message.partition(_OWN_ERROR)[2].partition(" [")[0]
    overload = _OVERLOAD.search(message)
    if overload is not None:
        return f"no such overload: {overload[1]}"
    if "Index error" in message or "index out of" in message.lower():
        return "index out of range"
    if "for 'self'" in message or "for 'oldSelf'" in message:
        return "the value does not have the type that the schema declares, or is too large a number"
    return next((text for text in _HARMLESS if text in message), "a function was given an invalid argument")


@cache
def _environment(self_type: str, with_indexes: bool, more: tuple[tuple[str, str], ...]) -> _Environment:  # noqa: FBT001
    """Return an environment in which ``self`` has the given type. With ``with_indexes``, the environment has ``indexOf`` for
    lists, and the library's own string functions are replaced.
    """
    variables = {name: cel.Type(kind) for name, kind in (("self", self_type), *more)}
    overloads = [*FUNCTIONS, *_match_functions()]
    overloads += [*INDEXES, *_library_string_functions()] if with_indexes else []
    extensions = _EXTENSIONS if with_indexes else (*_EXTENSIONS, "strings")
    return _new_environment(variables, extensions, overloads)


def _new_environment(
    variables: Mapping[str, object], extensions: Sequence[str], overloads: Sequence[Overload]
) -> _Environment:
    config = cel.NewEnvConfigFromYaml("extensions:\n" + "".join(f"  - name: {name}\n" for name in extensions))
    names = dict.fromkeys(overload.name for overload in overloads)
    functions = [
        cel.FunctionDecl(name, [_library_overload(overload) for overload in overloads if overload.name == name])
        for name in names
    ]
    return cast("_Environment", cel.NewEnv(config=config, variables=variables, functions=functions))


def _library_overload(overload: Overload) -> object:
    return cel.Overload(
        overload.id,
        cel.Type(overload.result),
        [cel.Type(parameter) for parameter in overload.parameters],
        overload.member,
        impl=_guarded(overload),
    )


def _guarded(overload: Overload) -> _Function:
    function = cast("_Function", overload.run)

    def run(*arguments: object) -> object:
        try:
            return function(*arguments)
        except ValueError as error:
            raise ValueError(f"{_OWN_ERROR}{overload.name}: {error}") from error
        except (TypeError, ArithmeticError) as error:
            raise ValueError(f"{_OWN_ERROR}{overload.name}: values that cannot be combined") from error

    return run


@cache
def _library_function(text: str, count: int) -> _Function:
    """Return an expression as a Python function of ``count`` arguments, which the expression names ``a0``, ``a1`` and so on."""
    environment = _new_environment(
        {f"a{index}": cel.Type("dyn") for index in range(count)}, (*_EXTENSIONS, "strings", "regex"), ()
    )
    compiled = environment.compile(text)

    def run(*arguments: object) -> object:
        value = compiled.eval(data={f"a{index}": argument for index, argument in enumerate(arguments)})
        plain = value.plain_value()
        if value.type().name() == "ERROR":
            raise ValueError("invalid arguments")
        return plain

    return run


def _library_string_functions() -> list[Overload]:
    return [
        Overload(
            name, result, parameters, _library_function(f"a0.{name}({_arguments(len(parameters))})", len(parameters))
        )
        for name, result, parameters in STRING_FUNCTIONS
    ]


def _arguments(count: int) -> str:
    return ", ".join(f"a{index}" for index in range(1, count))


def _find(text: str, pattern: str) -> object:
    return _library_function("regex.extract(a0, a1).orValue('')", 2)(text, without_groups(pattern))


def _find_all(text: str, pattern: str, most: int = -1) -> object:
    found = _library_function("regex.extractAll(a0, a1)", 2)(text, without_groups(pattern))
    return found[:most] if isinstance(found, list) and most >= 0 else found


def _match_functions() -> list[Overload]:
    runs = {"find": _find, "findAll": _find_all}
    return [Overload(name, result, parameters, runs[name]) for name, result, parameters in MATCHES]
