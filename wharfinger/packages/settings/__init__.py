"""Settings and values: merged, checked against schemas and rules, and reported with every problem.

May import ``rendering`` and below.
"""
