"""What commands do, from Python: `fit` and `open_run` return a run, whose methods are the other commands."""
