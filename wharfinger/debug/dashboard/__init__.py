"""The web pages that show a daemon in a browser on the same machine (`wharfinger dashboard`). A separate process queries the
debug socket, and serves HTML to the browser that has the one-time token.
"""
