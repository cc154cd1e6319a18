"""The self-contained page: what is gathered from runs becomes plain data, and plain data becomes HTML."""
