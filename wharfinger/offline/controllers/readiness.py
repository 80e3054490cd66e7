"""The expressions in ``spec.dependsOn[].readyExpr``, which decide in CEL whether a dependency is ready.

No cluster runs here, so a built object gets the status of a ready object: its generation was observed, and its condition
``Ready`` is true. An expression about other parts of a status cannot be evaluated without a cluster, so the dependency counts as
ready, and a warning reports this. An expression that does not read the status has the same value as in a cluster.
"""

import re
from collections.abc import Iterable
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_list, find_object, find_str
from wharfinger.formats.redaction.redaction import LAST_APPLIED
from wharfinger.offline.controllers.gate import Need, ReconcileError
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.store import ObjectStore, Stored
from wharfinger.packages.errors import RulesError
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.runtime.tasks.health_expressions import HealthExpressionError, HealthExpressions, expression_rule

MAX_EXPRESSION: Final = 16 * 1024
_STATUS: Final = re.compile(r"\bstatus\b")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_USUAL: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status", "data"})
_RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"),
        *("namespace", "null", "package", "return", "true", "var", "void", "while"),
    }
)
"""Words that cannot be names of variables in CEL."""


class Readiness:
    """An evaluator of ``readyExpr`` expressions. It evaluates them in the worker processes for CEL rules."""

    def __init__(self, store: ObjectStore, rules: Rules) -> None:
        self._store = store
        self._rules = rules

    async def of_dependencies(self, stored: Stored, needs: Iterable[Need]) -> tuple[str, ...]:
        """Evaluate the ``readyExpr`` of each dependency of a Kustomization or HelmRelease, with the variables ``self`` and
        ``dep``.

        ``needs`` are the objects that ``spec.dependsOn`` of ``stored`` names. Return warnings. Raises ReconcileError.
        """
        warnings: list[str] = []
        for entry, need in zip(find_list(stored.object, "spec", "dependsOn"), needs, strict=True):
            expression = find_str(as_object(entry, need.field), "readyExpr")
            found = self._store.get(need.id)
            if not expression or found is None:
                continue
            value: JsonObject = {"self": _as_ready(stored.object), "dep": _as_ready(found.object)}
            whole = f"cel.bind(dep, dyn(self.dep), cel.bind(self, dyn(self.self), (\n{expression}\n)))"
            warnings += await self._judged(found, expression, whole, value, f"{need.field}.readyExpr")
        return tuple(warnings)

    async def of_object(self, found: Stored, expression: str, field: str) -> tuple[str, ...]:
        """Evaluate an expression of a ResourceSet, with the object's fields as variables. Return warnings. Raises
        ReconcileError.
        """
        value = _as_ready(found.object)
        whole = expression
        for name in sorted({*filter(_NAME.match, value), *_USUAL} - _RESERVED):
            whole = f"cel.bind({name}, {f'dyn(self.{name})' if name in value else 'dyn({})'}, (\n{whole}\n))"
        return await self._judged(found, expression, whole, value, field)

    async def _judged(
        self, found: Stored, expression: str, whole: str, value: JsonObject, field: str
    ) -> tuple[str, ...]:
        if len(expression) > MAX_EXPRESSION:
            raise ReconcileError(f"{field}: more than {MAX_EXPRESSION} characters")
        try:
            if findings := await self._rules.check(expression_rule(whole)):
                raise ReconcileError(f"{field}: {findings[0].message}; correct the expression")
            if await HealthExpressions(self._rules).evaluate(whole, value):
                return ()
        except RulesError as error:
            raise ReconcileError(f"{field}: {error}") from error
        except HealthExpressionError as error:
            if error.transient:
                raise ReconcileError(f"{field}: {error}") from error
            return (
                f"{field}: cannot be evaluated without a cluster ({error}); {shown(found.id)} is assumed to be ready",
            )
        if _STATUS.search(expression):
            return (f"{field}: is false without a cluster; {shown(found.id)} is assumed to be ready",)
        raise ReconcileError(f"{field}: it is never true for {shown(found.id)}; correct the expression, or that object")


def _as_ready(obj: JsonObject) -> JsonObject:
    """Return an object as a cluster would show it when it is ready."""
    metadata = find_object(obj, "metadata")
    annotations: JsonObject = {
        key: value for key, value in find_object(metadata, "annotations").items() if key != LAST_APPLIED
    }
    labels = find_object(metadata, "labels")
    conditions: list[JsonValue] = [
        {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "observedGeneration": 1}
    ]
    return {
        **obj,
        "metadata": {**metadata, "labels": labels, "annotations": annotations, "generation": 1},
        "status": {"conditions": conditions, **find_object(obj, "status"), "observedGeneration": 1},
    }
