"""Field errors as ``apimachinery/util/validation/field`` words them."""

from wharfinger.cluster.control_plane.status import FieldError


def invalid_value(field: str, value: str, why: str) -> FieldError:
    """``field: Invalid value: "value": why``."""
    return FieldError(field, "FieldValueInvalid", f'Invalid value: "{value}": {why}')


def required(field: str, why: str = "") -> FieldError:
    """``field: Required value: why``."""
    return FieldError(field, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def too_long(field: str, limit: int) -> FieldError:
    """``field: Too long: …``."""
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")
