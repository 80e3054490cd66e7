"""Fault injection: the rules that users or tests write, the plan that selects the faults of a request by these rules, and the
handler in front of ``http`` that injects them.

``plan`` and ``rule`` are pure.
"""
