"""The rounds of global hooks: the state of the rounds, and the state machine that decides when a round begins, when the afterAll
hooks run, and when another round follows. In a round, the global hooks run before and after all other packages. The docstring of
``machine`` describes the rounds.

This folder may import ``scheduler`` and the folders below it in the layers of pyproject.toml. Pure.
"""
