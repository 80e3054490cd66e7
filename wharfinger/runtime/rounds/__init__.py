"""The rounds of global hooks around all other packages: their state, and the machine that decides when a round begins, when the
afterAll hooks run, and when another round follows. ``machine`` describes these rounds.

May import ``scheduler`` and below. Pure.
"""
