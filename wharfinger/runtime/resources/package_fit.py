"""The checks of a package against the resource that requests it."""

from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.definition.requirements import resolved
from wharfinger.runtime.resources.identity import IdentityError, PackageId


def check_kind(definition: Definition, identity: PackageId) -> None:
    """Check that a resource of the right kind installs the package. Raises IdentityError if the package is for another kind."""
    if definition.type is not None and definition.type.value != identity.kind:
        article = "an Application" if identity.kind == "Application" else "a Module"
        raise IdentityError(
            f"package {definition.name} {definition.version} is of type {definition.type.value}, and {article} asks for it; "
            f"use a resource of kind {definition.type.value}"
        )


def check_needs(definition: Definition, identity: PackageId) -> None:
    """Check a package's requirements, now that its name and its kind are known.

    Raises ShapeError if they contradict each other for that name and kind, IdentityError if the package needs itself.
    """
    needs = resolved(definition.requirements, identity.namespace)
    required = {each.name for each in (*needs.mandatory, *needs.conditional)}
    for names, verb in ((required, "requires"), (definition.subscriptions, "subscribes to")):
        if identity.name in names:
            raise IdentityError(
                f"package {definition.name} {definition.version} {verb} {identity.kind} {identity}, "
                "which is the name that it is installed under; install it under another name"
            )
