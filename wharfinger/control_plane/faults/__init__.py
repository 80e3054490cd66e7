"""Faults on purpose: rules that a person or a test writes, the plan that applies them, and the handler that injects them in
front of ``http``.

``plan`` and ``rule`` are pure.
"""
