"""The rounds of global hooks, which run before and after all other packages: their state, and the state machine that decides
when a round begins, when the afterAll hooks run, and when another round follows. The docstring of ``machine`` describes the
rounds.

This folder may import ``scheduler`` and the folders below it in the layers of pyproject.toml. Pure.
"""
