"""The defaults that an API server fills into built-in kinds, by area; :mod:`.objects` finds those of a kind.

What is defaulted here is part of what the writer owns; what a kind's strategy sets (:mod:`..strategies`) is not.
"""
