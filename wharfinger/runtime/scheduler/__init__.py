"""The scheduler, which decides which packages may be on, and in which order they run. It consists of gates, dependencies and
tiers, and of the decisions that the engine of ``fixpoint`` computes from them.

Pure. May import ``status`` and the layers below it; ``core`` carries out the decisions.
"""
