"""The objects that the templates of a ResourceSet make.

The templates are Go's, with ``<<`` and ``>>``, and are executed by the chart engine. This module parses the resulting texts, and
leaves out objects that are disabled or duplicates. Source: the documentation of the Flux Operator's ResourceSet API.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find_int, find_object, find_str
from wharfinger.formats.yaml.reader import read_yaml_documents
from wharfinger.offline.discovery.documents import flattened, is_manifest
from wharfinger.offline.store.identity import object_id
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.process.command import Ending
from wharfinger.process.errors import ProcessError
from wharfinger.runtime.fixpoint.model import Id

RECONCILE: Final = "fluxcd.controlplane.io/reconcile"
DISABLED: Final = "disabled"
MAX_OUTPUT: Final = 64 * 1024 * 1024
"""The largest size of an answer that is read, in bytes; the engine's answers are smaller."""


class TemplateError(Exception):
    """Templates cannot be executed, or their output contains something other than objects."""


class EngineMissingError(TemplateError):
    """No engine that executes templates is available."""


@dataclass(frozen=True, slots=True)
class Template:
    """One template: an object or a text with several documents. ``field`` names it in messages."""

    field: str
    content: JsonObject | str


@dataclass(frozen=True, slots=True)
class Executed:
    """The text that a template produced from one input. ``template`` is that template."""

    template: Template
    text: str


class TemplateEngine(Protocol):
    """An engine that executes Go templates."""

    async def execute(self, templates: Sequence[Template], inputs: Sequence[JsonObject], /) -> tuple[Executed, ...]:
        """Execute each template for each input, in their order. Raises TemplateError."""
        ...


class EngineTemplates:
    """The :class:`TemplateEngine` that executes templates in the chart engine."""

    def __init__(self, engine: ChartEngine | None) -> None:
        self._engine = engine

    async def execute(self, templates: Sequence[Template], inputs: Sequence[JsonObject]) -> tuple[Executed, ...]:
        """Execute each template for each input. Raises TemplateError."""
        engine = self._engine
        if engine is None or not engine.versions.has_templates:
            found = "there is none" if engine is None else "the present one is too old for templates"
            raise EngineMissingError(
                f"a ResourceSet needs the chart engine, and {found}; build it with `make engine`, and put it on PATH or "
                "name it with --engine"
            )
        asked = [_asked(each) for each in templates]
        try:
            outcome = (await engine.execute(asked, inputs)).outcome
        except ProcessError as error:
            raise TemplateError(f"the chart engine: {error}") from error
        if outcome.ending is not Ending.EXITED:
            raise TemplateError(f"the templates could not be executed: {outcome.describe()}")
        if outcome.returncode != 0:
            raise TemplateError(outcome.stderr.decode(errors="replace").strip() or outcome.describe())
        return tuple(_executed(outcome.stdout, templates))


def objects_of(executed: Sequence[Executed]) -> tuple[JsonObject, ...]:
    """Return the objects in the executed templates, in order. An object that is disabled is left out, and so is the repetition
    of an earlier object. Raises TemplateError.
    """
    found: dict[Id, JsonObject] = {}
    for each in executed:
        for obj in _read(each):
            try:
                annotations = find_object(obj, "metadata", "annotations")
                who = object_id(obj)
            except FormatError as error:
                raise TemplateError(f"{each.template.field}: {error}") from error
            if annotations.get(RECONCILE) != DISABLED:
                found.setdefault(who, obj)
    return tuple(found.values())


def _asked(template: Template) -> JsonObject:
    if isinstance(template.content, str):
        return {"field": template.field, "text": template.content}
    return {"field": template.field, "object": template.content}


def _executed(output: bytes, templates: Sequence[Template]) -> list[Executed]:
    try:
        answer = decode_json(output, max_bytes=MAX_OUTPUT, what="the chart engine's answer")
        listed = answer if isinstance(answer, list) else []
        return [_one(each, templates) for each in listed]
    except (FormatError, IndexError) as error:
        raise TemplateError(f"the chart engine's answer cannot be read: {error}") from error


def _one(value: JsonValue, templates: Sequence[Template]) -> Executed:
    entry = as_object(value, "an entry")
    return Executed(templates[find_int(entry, "template")], find_str(entry, "text"))


def _read(executed: Executed) -> list[JsonObject]:
    field = executed.template.field
    try:
        documents = read_yaml_documents(executed.text, what=field)
    except FormatError as error:
        raise TemplateError(f"{field}: its output is not YAML: {str(error).removeprefix(f'{field}: ')}") from error
    found: list[JsonObject] = []
    for document, _ in documents:
        for obj in flattened(document):
            if not isinstance(obj, dict) or not is_manifest(obj):
                raise TemplateError(
                    f"{field}: it makes a document that is not an object: apiVersion and kind are needed"
                )
            found.append(obj)
    if not isinstance(executed.template.content, str) and len(found) != 1:
        raise TemplateError(f"{field}: it makes {len(found)} objects; use resourcesTemplate for more than one")
    return found
