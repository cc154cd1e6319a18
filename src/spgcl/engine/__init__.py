"""A graph on a device, fast."""
