"""Copies of packages, with what they reference, from one registry or layout to another.

May import ``sources`` and below.
"""
