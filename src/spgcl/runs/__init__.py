"""Runs on disk, for Python and for the command line."""
