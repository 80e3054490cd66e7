"""Fault injection: the rules, which users or tests write, the plan that selects faults by them, and the handler that
injects the faults in front of ``http``.

``plan`` and ``rule`` are pure.
"""
