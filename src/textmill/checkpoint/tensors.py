"""Tensors in safetensors files: hashed while they are written, and read only from verified bytes.

The library's own writer needs the whole file in memory or writes without a hash. The format is a
length, a JSON header and raw bytes, so writing it here costs 30 lines and one pass; reading is the
library's part.
"""

import json
from collections.abc import Mapping

import torch
from safetensors import SafetensorError, deserialize
from torch import Tensor

from textmill.errors import CheckpointError
from textmill.runtime.disk import HashingFile

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}
"""Types by their names in a file."""
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def tensors_size(tensors: Mapping[str, Tensor]) -> int:
    """Bytes of the file that :func:`write_tensors` would write."""
    return len(header(tensors)) + sum(tensor.nbytes for tensor in tensors.values())


def write_tensors(file: HashingFile, tensors: Mapping[str, Tensor]) -> None:
    """Writes tensors of any device, strides and shape, one at a time."""
    file.write(header(tensors))
    for name in order(tensors):
        tensor = tensors[name]
        if tensor.numel():
            flat = tensor.detach().to("cpu").contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)


def read_tensors(data: bytes) -> dict[str, Tensor]:
    """Reads a safetensors file whose bytes have been verified, into memory of the tensors' own."""
    try:
        stored = deserialize(data)  # type: ignore[no-untyped-call]  # it has no annotations
    except SafetensorError as error:
        raise CheckpointError(f"not a safetensors file: {error}") from error
    tensors = {}
    while stored:  # each buffer is freed as soon as it is copied: at most two copies of the whole
        name, info = stored.pop()
        dtype = DTYPES.get(info["dtype"])
        if dtype is None:
            raise CheckpointError(f"tensor {name!r} has the unknown type {info['dtype']}")
        if info["data"]:
            tensor = torch.frombuffer(info["data"], dtype=dtype).reshape(info["shape"]).clone()
        else:
            tensor = torch.empty(info["shape"], dtype=dtype)
        tensors[name] = tensor
    return tensors


def order(tensors: Mapping[str, Tensor]) -> list[str]:
    """The names in the order of the file."""
    return sorted(tensors, key=lambda name: -tensors[name].element_size())  # stable within a width


def header(tensors: Mapping[str, Tensor]) -> bytes:
    """What stands before the numbers; of tensors without any (``meta``), too."""
    metadata = {"format": "pt"}
    entries: dict[str, object] = {"__metadata__": metadata}
    offset = 0
    for name in order(tensors):
        tensor = tensors[name]
        if tensor.dtype not in _NAMES:
            raise CheckpointError(f"The tensor {name!r} is {tensor.dtype}, which is not saved.")
        end = offset + tensor.nbytes
        entries[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
