"""Fitting a method to a graph: one way to fit, one loop, one step."""
