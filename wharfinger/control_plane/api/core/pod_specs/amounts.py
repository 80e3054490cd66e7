"""What a pod's containers take together: the sum of those that run side by side, or the most while one initializes.

KEP-753 (sidecars): an init container runs beside the restartable ones before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import ZERO, amount, format_quantity


@dataclass
class Amounts:
    """Resource → number, and the format that its first quantity had."""

    numbers: dict[str, Fraction] = field(default_factory=dict)
    formats: dict[str, JsonValue] = field(default_factory=dict)

    def add(self, resources: JsonValue) -> None:
        """Add the quantities of an object of resources."""
        for name, value in resources.items() if isinstance(resources, dict) else ():
            self.numbers[name] = self.numbers.get(name, ZERO) + amount(value)
            self.formats.setdefault(name, value)

    def raise_to(self, other: "Amounts") -> None:
        """Take what is more in others."""
        for name, number in other.numbers.items():
            if name not in self.numbers or number > self.numbers[name]:
                self.numbers[name], self.formats[name] = number, other.formats[name]

    def copy(self) -> "Amounts":
        """Amounts of their own."""
        return Amounts(dict(self.numbers), dict(self.formats))

    def text(self, name: str) -> str:
        """The amount of one resource as a quantity."""
        return format_quantity(self.numbers[name], self.formats[name])


def container_amounts(spec: JsonObject, kind: str) -> Amounts:
    """``requests`` or ``limits`` of a pod's containers together."""
    total, sidecars, initial = Amounts(), Amounts(), Amounts()
    for container in _objects(spec.get("containers")):
        total.add(find(container, "resources", kind))
    for container in _objects(spec.get("initContainers")):
        resources = find(container, "resources", kind)
        if container.get("restartPolicy") == "Always":
            total.add(resources)
            sidecars.add(resources)
            initial.raise_to(sidecars)
        else:
            alone = Amounts()
            alone.add(resources)
            alone.add({name: sidecars.text(name) for name in sidecars.numbers})
            initial.raise_to(alone)
    total.raise_to(initial)
    return total


def _objects(value: JsonValue) -> Iterable[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
