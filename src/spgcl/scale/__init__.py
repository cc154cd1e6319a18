"""Graphs larger than memory, or than one machine: a store on disk, and work over its blocks of rows."""
