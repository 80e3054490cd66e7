"""Bringing something to the rows of a table: what is pending, who works at it, what failed and when again (spec/schedulers D)."""
