"""The validation of expressions of policies and of the match conditions of webhooks."""

from wharfinger.control_plane.api.admissionregistration.expression_environment import (
    ANNOTATION,
    CONDITION,
    MESSAGE,
    Environment,
    compiled,
    kept_type,
    refusal,
)
from wharfinger.control_plane.cel.values.types import DYN, Type
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.formats.json.value import JsonObject


class Compiler:
    """A compiler for the expressions of one policy; each variable is known to the variables that follow it."""

    def __init__(self, spec: JsonObject, *, composition: bool = True) -> None:
        self._params = part(spec, "paramKind") is not None
        self._variables: dict[str, Type] | None = {} if composition else None

    def environment(self, *, authorizer: bool = True, patches: bool = False) -> Environment:
        """Return the variables that an expression may use now, including all variables added so far."""
        known = None if self._variables is None else tuple(self._variables.items())
        return Environment(self._params, authorizer, known, patches)

    def variable(self, name: str, expression: str) -> str:
        """Add a variable; return the reason why it is invalid, or ""."""
        found = compiled(expression, self.environment())
        if self._variables is not None:
            self._variables[name] = DYN if found.problem else kept_type(found.result)
        return refusal(found)

    def validation(self, expression: str) -> str:
        """Return the reason why a validation's expression is invalid, or ""."""
        return refusal(compiled(expression, self.environment()), *CONDITION)

    def message(self, expression: str) -> str:
        """Return the reason why a message's expression is invalid, or ""."""
        return refusal(compiled(expression, self.environment(authorizer=False)), *MESSAGE)

    def annotation(self, expression: str) -> str:
        """Return the reason why the value expression of an audit annotation is invalid, or ""."""
        return refusal(compiled(expression, self.environment()), *ANNOTATION)

    def mutation(self, expression: str, wanted: Type) -> str:
        """Return the reason why a mutation's expression is invalid, or ""; its result must be an object or patches."""
        return refusal(compiled(expression, self.environment(patches=True)), wanted)


def condition_refusal(expression: str, *, params: bool) -> str:
    """Return the reason why the match condition of a webhook or a policy is invalid, or ""."""
    return refusal(compiled(expression, Environment(params)), *CONDITION)


def own_text(document: JsonObject, name: str) -> str:
    """Return the text in a field of a document, without surrounding white space."""
    return text(document, name).strip()
