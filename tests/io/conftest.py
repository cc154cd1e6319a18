import warnings

# Importing PyTorch Geometric runs torch.jit.script once, which torch calls deprecated.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric  # noqa: F401
