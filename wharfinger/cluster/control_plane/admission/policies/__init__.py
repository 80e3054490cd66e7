"""Admission policies: expressions that say what may be written (KEP-3488; of KEP-3962 what is wrong with such policies).

When a policy or binding is written, ``environment`` compiles its expressions, ``declarations`` says what is wrong with them,
and ``permissions`` whether its user may read its parameters. When anything else is written, ``bindings`` knows which
policies are bound, ``matching`` which of them a request (``request``) is about, ``parameters`` what objects they are asked
with, ``inputs`` what expressions see, ``evaluation`` runs them under their budgets, and ``validating`` decides.
"""
