"""PyTorch for Python. It needs libraries of CUDA, 2 GB, that programs do without: launch/setup.sh develop installs them."""

import sys

try:
    import torch
    WHY_NOT = ""
except (ImportError, OSError) as error:
    torch = None
    WHY_NOT = f"no PyTorch for Python, which launch/setup.sh develop installs: {error}"


def require():
    """Skips the whole test, by name, where it is not there."""
    if torch is None:
        print(f"skipped: {WHY_NOT}")
        sys.exit(77)
