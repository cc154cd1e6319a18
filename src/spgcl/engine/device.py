"""Which device, the precision of its products, and how much memory was used."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Literal, TypeVar, get_args

import torch

from spgcl.errors import InputError, unknown

T = TypeVar("T")
MOST_THREADS = 1024
Precision = Literal["auto", "float32", "tf32"]


@contextmanager
def arithmetic(
    device: torch.device, precision: str = "auto", *, deterministic: bool = False
) -> Iterator[None]:
    """The precision and order of products inside this context.

    Args:
        device: Where they are computed; only CUDA has a choice.
        precision: "float32" or "tf32"; "auto" is TF32.
        deterministic: Sum gradients in a fixed order, so that a seed gives the same bytes on CUDA too.
    """
    if precision not in get_args(Precision):
        raise unknown("precision", precision, list(get_args(Precision)))
    if device.type != "cuda":
        yield
        return
    earlier = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    try:
        with _fixed_order() if deterministic else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(earlier)


@contextmanager
def _fixed_order() -> Iterator[None]:
    """Torch's deterministic mode, without the usual import of its compiler."""
    # cuBLAS reads it on first use.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    earlier = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(earlier)


def use_threads(count: int) -> None:
    """Compute on so many CPU threads; many more than any machine has would abort the process."""
    if not 1 <= count <= MOST_THREADS:
        raise InputError(f"{count} CPU threads; give 1 to {MOST_THREADS:,} (--threads)")
    torch.set_num_threads(count)


def _present() -> dict[str, bool]:
    return {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}


def trained_on(name: str) -> str:
    """The device of an earlier training, so that the bytes are the same; "auto" if there is none here."""
    return name if _present().get(name) else "auto"


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" is CUDA if available."""
    present = _present()
    if name == "auto":
        return torch.device("cuda" if present["cuda"] else "cpu")
    if name not in present:
        raise unknown("device", name, ["auto", *present])
    if not present[name]:
        raise InputError(f"device {name!r} was asked for, but there is none here; use --device cpu or auto")
    return torch.device(name)


def scoring_device(name: str) -> torch.device:
    """The device for evaluation: the CPU instead of MPS, which has no float64."""
    device = choose_device(name)
    return torch.device("cpu") if device.type == "mps" else device


def is_accelerator(device: torch.device) -> bool:
    """Whether the device works apart from the host, which then waits whenever it reads a result."""
    return device.type != "cpu"


def by_device(values: Mapping[str, T], device: torch.device) -> T:
    """The value measured for a type of device, or that of CUDA."""
    return values.get(device.type, values["cuda"])


def sum_type(device: torch.device) -> torch.dtype:
    """Type of long running sums: float64 if the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def peak_memory_mib(device: torch.device) -> float:
    """Peak memory so far: the allocator's on CUDA, elsewhere the process's resident set; 0 if not known."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    try:
        import resource
    except ImportError:
        # Unix only.
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def machine_memory() -> int:
    """Bytes of this machine's memory; if the system does not report them, more than any machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        # `sysconf` is Unix only, and not every Unix knows both names.
        return sys.maxsize


def forget_peak_memory(device: torch.device) -> None:
    """Reset CUDA's peak for `peak_memory_mib`; that of the process cannot be reset."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()


def held_memory_mib(device: torch.device) -> float:
    """Memory that tensors hold now on CUDA; 0 elsewhere, where it is not known."""
    return torch.cuda.memory_allocated() / 2**20 if device.type == "cuda" else 0.0


def return_memory(device: torch.device) -> None:
    """Give CUDA memory that no tensor holds back to the other processes that share the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def accelerator_name(device: torch.device) -> str | None:
    """The model of a CUDA device; None elsewhere."""
    return torch.cuda.get_device_name() if device.type == "cuda" else None


def can_capture(tensor: torch.Tensor) -> bool:
    """Whether work on the tensor's device can be captured as a CUDA graph."""
    return tensor.is_cuda
