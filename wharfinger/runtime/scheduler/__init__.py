"""The scheduler, which decides which packages may be on, and in which order they run. It has gates, dependencies, tiers, and the
decisions that follow from them, computed by the engine of ``fixpoint``.

Pure. May import ``status`` and below; decisions are carried out in ``core``.
"""
