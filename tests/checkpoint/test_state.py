"""Whatever state goes in comes out bitwise, and the safetensors library agrees with our files."""

import json
import math
import re
import struct

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkpoint.saving import through_disk
from textmill.checkpoint.state import join_state, split_state
from textmill.checkpoint.tensors import read_tensors, write_tensors
from textmill.errors import CheckpointError
from textmill.runtime.disk import HashingFile

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.uint16, torch.bool, torch.complex64,
    torch.float8_e4m3fn,
]  # fmt: skip


def bits(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    return tensor.dtype, tuple(tensor.shape), flat.view(torch.uint8).numpy().tobytes()


def same(left, right):
    """Equal structure, keys of equal type, and equal bits."""
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and bits(left) == bits(right)
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=True)
        return all(same(a, c) and same(b, d) for (a, b), (c, d) in pairs)
    if isinstance(left, list | tuple):
        alike = type(left) is type(right) and len(left) == len(right)
        return alike and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, float):
        return isinstance(right, float) and struct.pack("d", left) == struct.pack("d", right)
    return type(left) is type(right) and left == right


def random_tensor(dtype, shape):
    count = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
    data = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_kind_come_back_bitwise(tmp_path, dtype):
    torch.manual_seed(0)
    base = random_tensor(dtype, (6, 10))
    state = {
        "plain": base, "scalar": random_tensor(dtype, ()), "empty": random_tensor(dtype, (0, 3)),
        "transposed": base.t(), "every other": base[::2, 1::3], "expanded": base[:1].expand(4, 10),
        "parameter": torch.nn.Parameter(base.float() if dtype.is_floating_point else base, False),
        "odd": random_tensor(dtype, (3,)),
    }  # fmt: skip
    assert same(state, through_disk(state, tmp_path))


def test_the_library_reads_ours_and_we_read_the_librarys(tmp_path):
    torch.manual_seed(0)
    names = ("F64", "é", "a.b", "z")
    tensors = {
        name: random_tensor(dtype, (3, 5)) for name, dtype in zip(names, DTYPES[::3], strict=False)
    }
    path = tmp_path / "a.safetensors"
    with HashingFile(path) as file:
        write_tensors(file, tensors)
    theirs = safetensors.torch.load_file(path)
    assert same(tensors, {name: theirs[name] for name in tensors})
    ours = read_tensors(safetensors.torch.save(tensors))
    assert same(tensors, {name: ours[name] for name in tensors})


def test_tied_tensors_are_stored_once_and_are_one_again(tmp_path):
    weight = torch.randn(3, 4)
    state = {"embed": weight, "head": weight, "view": weight[0], "copy": weight.clone()}
    tensors, _ = split_state(state)
    assert list(tensors) == ["embed", "view", "copy"]
    back = through_disk(state, tmp_path)
    assert back["embed"] is back["head"]
    assert same(state, back)


def test_names_that_collide_stay_apart(tmp_path):
    one, two, three = torch.ones(1), torch.zeros(1), torch.full((1,), 2.0)
    state = {"a.b": one, "a": {"b": two}, "": three, "__metadata__": torch.ones(2), "x": {"": one}}
    assert same(state, through_disk(state, tmp_path))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.sampled_from(["$tensor", "$float", "$", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.text(max_size=3)
            | st.sampled_from(["$tensor", "$dict", "$tuple"])
            | st.integers()
            | st.none()
            | st.tuples(st.integers(), st.text(max_size=2)),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_any_plain_state_comes_back_equal(state):
    tensors, plain = split_state(state)
    assert tensors == {}
    assert same(state, join_state({}, json.loads(json.dumps(plain, allow_nan=False))))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": [0, {"b": {1, 2}}]}, "state at 'a.1.b' is a set, "),
        ({"a": np.zeros(2)}, "state at 'a' is a numpy.ndarray, "),
        ({"a": {frozenset(): 1}}, "state at 'a' has a key of type frozenset, "),
        ({"w": torch.eye(2).to_sparse()}, "tensor at 'w' is torch.float32 in layout .*_coo, "),
    ],
)
def test_what_cannot_be_saved_is_named(state, message):
    with pytest.raises(CheckpointError, match=f"^The {message}which is not saved: "):
        split_state(state)


def test_a_state_that_contains_itself_ends():
    state: dict = {}
    state["self"] = state
    with pytest.raises(CheckpointError, match=r"nested deeper than 64 levels: it may contain"):
        split_state(state)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"$tensor": "w"}, "The tensor 'w' is named, but not stored."),
        ({"$float": "12"}, "'12' does not spell the bytes of a float."),
        ({"$call": "os.system"}, "The form '$call' with a str is unknown."),
        ({"$tuple": 3}, "The form '$tuple' with a int is unknown."),
        ({"$dict": [[[], 1]]}, "A dict is not stored as pairs: unhashable type: 'list'."),
    ],
)
def test_hostile_forms_are_refused(plain, message):
    with pytest.raises(CheckpointError, match=re.escape(message)):
        join_state({}, {"a": [plain]})


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff" * 8, (1 << 62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (60).to_bytes(8, "little")
        + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}     ',
    ],
)  # fmt: skip
def test_bytes_that_are_no_safetensors_file_are_refused(data):
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        read_tensors(data)
