"""Settings and values: a user's settings, the package's values, and the values for hooks and templates. Pure.

Layers, each over the one before (spec/runtime §8.5)::

    static values          the package's values.yaml
    settings defaults      of the settings schema; a default only fills what is absent
    settings               the user's own
    values defaults        of the values schema
    hook patches           changes by the package's hooks (not applied here)

Objects are merged member by member; everything else, lists included, is replaced. There are four results:

* *effective settings*: the user's settings and the defaults, checked against the settings schema, which refuses unknown fields;
* *values*: all of these layers except hook patches;
* *hook values*: ``{"global": …, "<camelName>": …}``, for the files that hooks get;
* *Helm values*: for templates; they differ by layout (`helm_values`).

`check_settings` and `check_values_rules` also check rules and immutable fields; they have to wait for a worker process, and
return all problems and warnings. The other checks raise SettingsError.

A plain chart has no settings schema: Helm merges its ``values.yaml`` itself and checks ``values.schema.json``.

Arguments are not changed, and results share parts with them: treat arguments and results as immutable.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, type_name
from wharfinger.formats.listing import listed
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.schemas.document import ValuePath, path_text
from wharfinger.formats.schemas.openapi_schema import Schema
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.settings.report import SettingsReport, report_on

MAX_VALUES: Final = 4 * 1024 * 1024
"""The largest size of all values of one package, in bytes of JSON; they are passed through files and a Secret."""
MAX_SHOWN: Final = 5
"""The largest number of problems in a message; `SettingsError.problems` has all of them."""
MAX_MESSAGE: Final = 300
"""The largest number of characters of one problem in a message."""

_RUNTIMES: Final = frozenset({"Application", "Module", "Platform"})


class SettingsError(PackageError):
    """The settings or the values violate their schema. The error is permanent until they change.

    The message is one line: ``spec.settings: 2 problems: replicas: …; host: …``.
    """

    def __init__(self, problems: Sequence[Problem], *, subject: str = "spec.settings") -> None:
        self.problems = tuple(problems)
        shown = listed(map(_shown, self.problems), MAX_SHOWN, "; ")
        count = f"{len(self.problems)} problems: " if len(self.problems) > 1 else ""
        super().__init__(f"{subject}: {count}{shown}")


@dataclass(frozen=True, slots=True)
class RenderContext:
    """Data of the installation for templates: its name and namespace, and the source, version and digest of its package.

    ``registry`` is the address of the package's repository without the package's name, ``version`` the requested version.
    """

    name: str
    namespace: str
    registry: str
    version: str
    digest: str


def effective_settings(definition: Definition, settings: JsonObject) -> JsonObject:
    """Return the user's settings with the defaults of the settings schema. Raises SettingsError if the schema refuses them.

    Without a schema, a chart and a module folder accept any settings, and a ``package.yaml`` package accepts none. Manifests
    never have settings.
    """
    schema = definition.settings_schema
    if schema is None:
        if settings and definition.layout is Layout.MANIFESTS:
            problem = f"package {definition.name} has no chart, so it accepts no settings; remove them, or add a chart"
            raise SettingsError([Problem("", problem)])
        if settings and definition.layout is Layout.PACKAGE:
            raise SettingsError(
                [
                    Problem(
                        "",
                        f"package {definition.name} has no settings schema, so it accepts no settings; remove the settings",
                    )
                ]
            )
        return _bounded(settings, "spec.settings")
    effective = _defaulted(schema, _bounded(settings, "spec.settings"), "spec.settings")
    _check(schema, effective, "spec.settings")
    return effective


def merged_values(definition: Definition, settings: JsonObject) -> JsonObject:
    """Return the values: all layers except patches of hooks.

    ``settings`` are the user's own settings, without defaults, because defaults would override static values. Raises
    SettingsError if the result is too big, or not an object.
    """
    values = _defaulted(definition.settings_schema, definition.static_values, "values")
    values = _bounded(_merged(values, settings), "values")
    # Defaults of settings are filled in once more, because objects in the user's settings may lack some.
    for schema in (definition.settings_schema, definition.values_schema):
        values = _defaulted(schema, values, "values")
    return _bounded(values, "values")


def check_values(definition: Definition, values: JsonObject) -> None:
    """Raise SettingsError if the values schema refuses the values."""
    if definition.values_schema is not None:
        _check(definition.values_schema, values, "values")


def default_problems(definition: Definition) -> tuple[Problem, ...]:
    """Return the problems of the fields in ``values.yaml``, as if the user's settings replaced none of them.

    The fields are checked against the values schema or, without one, the settings schema. Only this function uses the settings
    schema for them; the daemon never does. So fields that the settings schema does not know are not reported. An absent
    required field is not reported either, because the user may set it. Rules are not evaluated.
    """
    static = definition.static_values
    problems: tuple[Problem, ...] = ()
    try:
        values = merged_values(definition, {})
        if definition.values_schema is not None:
            check_values(definition, values)
        elif definition.settings_schema is not None and static:
            known = _object(definition.settings_schema.pruned(static), "values")
            effective_settings(definition, known)
    except SettingsError as error:
        problems = error.problems
    written = set(_paths(static, ()))
    taken = _taken(static) if definition.layout is Layout.PACKAGE else ()
    return (*taken, *(problem for problem in problems if problem.path in written))


async def check_package_rules(definition: Definition, rules: Rules) -> None:
    """Compile the rules of the package's schemas, once, when the package is loaded.

    Raises ArtifactError, with the place and the error of each wrong rule, and RulesError.
    """
    wrong: list[str] = []
    for what, schema in (("settings", definition.settings_schema), ("values", definition.values_schema)):
        if schema is not None and schema.rules is not None:
            findings = await rules.check(schema.rules)
            wrong += [f"{what} schema: {finding.at}: {finding.message}" for finding in findings]
    if wrong:
        shown = (each if len(each) <= MAX_MESSAGE else each[: MAX_MESSAGE - 1] + "…" for each in wrong)
        raise ArtifactError(f"package {definition.name}: {listed(shown, MAX_SHOWN, '; ')}")


async def check_settings(
    definition: Definition, settings: JsonObject, old: JsonObject | None, rules: Rules
) -> SettingsReport:
    """Return all problems and warnings of the user's settings. A rule may compare them with ``old``, the previous settings.

    ``old`` is None if there were no previous settings. Neither argument includes defaults. If there are no problems, the
    report's ``settings`` are the effective settings. Raises only RulesError.
    """
    schema = definition.settings_schema
    try:
        if schema is None:
            return SettingsReport((), (), effective_settings(definition, settings))
        value = _defaulted(schema, _bounded(settings, "spec.settings"), "spec.settings")
        before = None if old is None else _defaulted(schema, old, "spec.settings")
    except SettingsError as error:
        return SettingsReport(error.problems, (), settings)
    return await report_on(schema, settings, value, before, rules)


async def check_values_rules(
    definition: Definition, values: JsonObject, old: JsonObject | None, rules: Rules
) -> SettingsReport:
    """Return all problems of values, including violated rules. A rule may compare them with ``old``, the previous values.
    Raises RulesError.

    Deprecated values cause no warnings here: `check_settings` warns of deprecated settings, which are the part that users
    write.
    """
    schema = definition.values_schema
    if schema is None:
        return SettingsReport((), (), values)
    return await report_on(schema, {}, values, old, rules)


def hook_values(definition: Definition, global_values: JsonObject, values: JsonObject) -> JsonObject:
    """Return the content of the file that VALUES_PATH names for a hook. If ``values`` are the user's settings, it is the
    content of the file that CONFIG_VALUES_PATH names.
    """
    return {"global": global_values, definition.camel: values}


def helm_values(
    definition: Definition,
    context: RenderContext,
    global_values: JsonObject,
    settings: JsonObject,
    values: JsonObject,
) -> JsonObject:
    """Return ``.Values`` for templates. ``settings`` are the effective settings.

    The specification (spec/runtime §8.4) has further root objects beside ``.Values``, such as ``.Application``. ``helm
    template`` cannot provide them, so they are keys of ``.Values``. Raises SettingsError if the values lack a property that the
    schema requires for Helm, or have one of these keys themselves.
    """
    if definition.layout is Layout.MANIFESTS:
        return {}
    if definition.layout is Layout.CHART:
        return settings
    if definition.helm_schema is not None:
        _check(definition.helm_schema, values, "values for the templates")
    if definition.layout is Layout.MODULE_FOLDER:
        return hook_values(definition, global_values, values)
    if taken := _taken(values):
        raise SettingsError(taken, subject="values for the templates")
    if definition.type is PackageType.APPLICATION:
        told = _application(definition, context, settings)
    else:
        told = {**_module(definition, context), definition.camel: values}
    own_global = values.get("global")
    platform = _merged(global_values, own_global) if isinstance(own_global, dict) else global_values
    return {**values, **told, "global": platform, "Platform": global_values}


def _application(definition: Definition, context: RenderContext, settings: JsonObject) -> JsonObject:
    images: JsonObject = {
        name: f"{_repository(definition, context)}@{digest}" for name, digest in definition.images.items()
    }
    return {
        "Application": {
            "Instance": {"Name": context.name, "Namespace": context.namespace},
            "Package": {
                "Name": definition.name,
                "Version": context.version,
                "Digest": context.digest,
                "Images": images,
                "Registry": {"Address": context.registry},
            },
            "Settings": settings,
        }
    }


def _module(definition: Definition, context: RenderContext) -> JsonObject:
    return {
        "Module": {
            "Package": {
                "Name": definition.name,
                "Version": context.version,
                "Digest": context.digest,
                "Digests": dict(definition.images),
                "Registry": {"Address": context.registry},
            }
        }
    }


def _repository(definition: Definition, context: RenderContext) -> str:
    return f"{context.registry}/{definition.name}" if context.registry else definition.name


def _taken(values: JsonObject) -> tuple[Problem, ...]:
    """Return a problem for each key of the values that is reserved for the runtime."""
    why = "this name is reserved for the daemon's data for templates; choose another"
    return tuple(Problem(key, why) for key in sorted(_RUNTIMES & values.keys()))


def _paths(value: JsonValue, at: ValuePath) -> Iterator[str]:
    """Yield the path of each field and item below ``at``, as problems name it."""
    inside: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for step, inner in inside:
        yield path_text((*at, step))
        yield from _paths(inner, (*at, step))


def _merged(below: JsonObject, above: JsonObject) -> JsonObject:
    try:
        return overlaid(below, above)
    except FormatError as error:
        raise SettingsError([Problem("", str(error))], subject="values") from error


def _check(schema: Schema, value: JsonObject, subject: str) -> None:
    problems = schema.problems(value)
    if problems:
        raise SettingsError(problems, subject=subject)


def _defaulted(schema: Schema | None, value: JsonObject, subject: str) -> JsonObject:
    if schema is None:
        return value
    try:
        return _object(schema.defaulted(value), subject)
    except FormatError as error:
        raise SettingsError([Problem("", str(error))], subject=subject) from error


def _shown(problem: Problem) -> str:
    said = " ".join(str(problem).split())
    return said if len(said) <= MAX_MESSAGE else said[: MAX_MESSAGE - 1] + "…"


def _object(value: JsonValue, subject: str) -> JsonObject:
    if not isinstance(value, dict):
        raise SettingsError([Problem("", f"expected an object, found {type_name(value)}")], subject=subject)
    return value


def _bounded(value: JsonObject, subject: str) -> JsonObject:
    """Return the value. Raises SettingsError if it is too big to be stored and passed on."""
    try:
        size = len(encode_json(value))
    except FormatError as error:
        raise SettingsError([Problem("", str(error))], subject=subject) from error
    if size > MAX_VALUES:
        raise SettingsError([Problem("", f"{size} bytes is over the limit of {MAX_VALUES}")], subject=subject)
    return value
