"""The total resources of a pod's containers: the sum for the containers that run at the same time, or the maximum during
initialization if this maximum is larger.

KEP-753 (sidecars): an init container runs at the same time as the restartable init containers before it.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from wharfinger.control_plane.api.common.filling import objects
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import ZERO, amount, format_quantity


@dataclass
class Amounts:
    """Amounts of resources.

    ``numbers`` contains the amounts. ``formats`` contains a quantity for each resource; :meth:`text` writes the amount in the
    notation of this quantity (such as ``Mi``).
    """

    numbers: dict[str, Fraction] = field(default_factory=dict)
    formats: dict[str, JsonValue] = field(default_factory=dict)

    def add(self, resources: JsonValue) -> None:
        """Add the quantities of ``requests`` or ``limits``."""
        for name, value in resources.items() if isinstance(resources, dict) else ():
            self.numbers[name] = self.numbers.get(name, ZERO) + amount(value)
            self.formats.setdefault(name, value)

    def raise_to(self, other: "Amounts") -> None:
        """Raise each amount to the amount in ``other`` if that is larger."""
        for name, number in other.numbers.items():
            if name not in self.numbers or number > self.numbers[name]:
                self.numbers[name], self.formats[name] = number, other.formats[name]

    def copy(self) -> "Amounts":
        """Return an independent copy."""
        return Amounts(dict(self.numbers), dict(self.formats))

    def text(self, name: str) -> str:
        """Return the amount of one resource as a quantity."""
        return format_quantity(self.numbers[name], self.formats[name])


def container_amounts(spec: JsonObject, kind: str) -> Amounts:
    """Return the total ``requests`` or ``limits`` of a pod's containers."""
    total, sidecars, initial = Amounts(), Amounts(), Amounts()
    for container in objects(spec.get("containers")):
        total.add(find(container, "resources", kind))
    for container in objects(spec.get("initContainers")):
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
