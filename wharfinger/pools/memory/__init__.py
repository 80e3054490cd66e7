"""The memory of all pools: the sizes of their processes, and the choice of idle processes that are ended if the sum is too large.

A pool reports its processes, and asks before it starts another one. This folder may import no other folder of ``pools``.
"""
