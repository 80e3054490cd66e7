"""The live view of a daemon on a terminal (`wharfinger top`): a pure core (`machine`, `screen`), a thread that asks the daemon,
and a thin shell over curses.
"""
