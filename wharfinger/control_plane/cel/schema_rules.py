"""The compilation of the rules of a schema: their errors, their estimated costs, and the programs that evaluate them."""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.cel.compiling import judged
from wharfinger.control_plane.cel.costs.estimate import estimate
from wharfinger.control_plane.cel.evaluation import Program
from wharfinger.control_plane.cel.syntax.grammar_errors import TOO_DEEP
from wharfinger.control_plane.cel.values.schema_types import REQUEST_BYTES, Declared, TypeTable
from wharfinger.control_plane.cel.values.types import Type, optional
from wharfinger.formats.json.value import JsonObject

SELF: Final = "self"
OLD: Final = "oldSelf"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled expression: its error (``problem``), or its program, its estimated cost, and whether it uses ``oldSelf``."""

    problem: str = ""
    program: Program | None = None
    cost: int = 0
    uses_old: bool = False


class Scope:
    """The types that rules at one place of a schema can use."""

    def __init__(self, schema: JsonObject, *, root: bool) -> None:
        self._table = TypeTable()
        self.declared = self._table.declared(schema, "selfType0", root=root)

    @property
    def most_values(self) -> int:
        """The maximum number of values of this schema in a request of the maximum size."""
        least = 0 if self.declared is None else self.declared.least_bytes
        return REQUEST_BYTES // (least + 1)

    def compiled(self, text: str, wanted: Type, *, optional_old: bool, message: bool = False) -> Compiled:
        """Compile an expression that must have the type ``wanted``.

        With ``optional_old``, ``oldSelf`` is an optional. ``message`` is true for a ``messageExpression``.
        """
        declared = self.declared
        prefix = "messageExpression compilation failed: " if message else "compilation failed: "
        if declared is None:
            return Compiled("failed to convert to declType for CEL validation rules")
        try:
            return self._program(text, prefix, declared, wanted, optional_old=optional_old, message=message)
        except RecursionError:  # such as ``a + a + …`` with thousands of operands
            return Compiled(prefix + TOO_DEEP)

    def _program(
        self, text: str, prefix: str, declared: Declared, wanted: Type, *, optional_old: bool, message: bool
    ) -> Compiled:
        """Compile an expression whose variable ``self`` has the type ``declared``. Raises RecursionError."""
        old = optional(declared.type) if optional_old else declared.type
        checked = judged(text, {SELF: declared.type, OLD: old}, self._table.fields)
        if isinstance(checked, str):
            return Compiled(prefix + checked)
        if checked.result != wanted:
            problem = (
                "messageExpression must evaluate to a string" if message else "cel expression must evaluate to a bool"
            )
            return Compiled(problem)
        cost = estimate(checked, declared)
        return Compiled(program=Program(checked), cost=cost, uses_old=OLD in checked.names)
