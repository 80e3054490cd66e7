"""How the objects of a release are: readiness over time, rules and expressions of packages, stalls and deadlines.

May import ``apply`` and below.
"""
