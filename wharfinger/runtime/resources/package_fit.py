"""The checks whether a package fits the resource that requests it."""

from wharfinger.formats.listing import with_article
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.definition.requirements import resolved
from wharfinger.runtime.resources.identity import IdentityError, PackageId


def check_kind(definition: Definition, identity: PackageId) -> None:
    """Check that a package's type fits the kind of the resource that installs it. Raises IdentityError if it does not fit."""
    if definition.type is not None and definition.type.value != identity.kind:
        raise IdentityError(
            f"package {definition.name} {definition.version} is of type {definition.type.value}, and "
            f"{with_article(identity.kind)} asks for it; use a resource of kind {definition.type.value}"
        )


def check_needs(definition: Definition, identity: PackageId) -> None:
    """Check a package's requirements together with the name and the kind under which it is installed.

    Raises ShapeError if the requirements contradict each other, IdentityError if the package requires itself or subscribes to
    itself.
    """
    needs = resolved(definition.requirements, identity.namespace)
    required = {each.name for each in (*needs.mandatory, *needs.conditional)}
    for names, verb in ((required, "requires"), (definition.subscriptions, "subscribes to")):
        if identity.name in names:
            raise IdentityError(
                f"package {definition.name} {definition.version} {verb} {identity.kind} {identity}, "
                "and is itself installed under this name; install it under another name"
            )
