"""`python -m spgcl`, the same as `spgcl`."""

from spgcl.cli import main

if __name__ == "__main__":
    main()
