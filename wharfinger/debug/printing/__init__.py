"""What is printed for people: tables, explanations, statistics, and secrets taken out.

May import ``fields``.
"""
