"""OpenAPI v3 schemas of settings, values and custom resources: validation, defaults, conversions and the wording of problems.

May import ``redaction``, ``yaml`` and ``json``.
"""
