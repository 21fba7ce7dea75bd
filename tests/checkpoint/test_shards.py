"""Checkpoints of which each rank wrote its rows: read by any number, made plain, or refused."""

import json
import os
from dataclasses import replace

import pytest
import torch
from torch.distributed.checkpoint import HuggingFaceStorageReader, load

from textmill.checkpoint.layout import MANIFEST, STATE, shard_file
from textmill.checkpoint.manifest import Manifest, Pointer, digest_of, verify
from textmill.checkpoint.parts import load_part, plain_parts, read_part
from textmill.checkpoint.shards import TensorRows, write_shards
from textmill.checkpoint.state import split_state
from textmill.checkpoint.store import Checkpoints
from textmill.checkpoint.writing import consolidate
from textmill.errors import CheckpointError
from textmill.runtime.sealed import FileEntry

STATE_OF = {
    "table": torch.arange(14.0).reshape(7, 2),
    "one": torch.tensor([[1.5, 2.5]], dtype=torch.bfloat16),
    "bias": torch.arange(4, dtype=torch.int64),
    "step": torch.tensor(3.0),
}


def rows_of(rank, size):
    """As torch divides rows: the last ranks may have fewer, or none."""

    def rows(name):
        shape = tuple(STATE_OF[name].shape)
        if not shape:
            return None
        each = -(-shape[0] // size)
        first = min(rank * each, shape[0])
        return TensorRows(first=first, count=min(each, shape[0] - first), shape=shape)

    return rows


def share(rank, size):
    rows = rows_of(rank, size)
    return {
        name: tensor if (at := rows(name)) is None else tensor[at.first : at.first + at.count]
        for name, tensor in STATE_OF.items()
    }


def write_sharded(folder, size, step=5):
    """A checkpoint as ranks write it; the first of them says what is in state.json."""
    path = folder / f"step-{step:08d}"
    path.mkdir(parents=True)
    files = {}
    for rank in range(size):
        rows = {"model": rows_of(rank, size)}
        parts = {"model": share(rank, size)}
        files |= write_shards(path, parts, rows, rank=rank, world_size=size)
    _, plain = split_state(STATE_OF)
    text = json.dumps({"format_version": 1, "step": step, "parts": {"model": plain}})
    (path / STATE).write_text(text)
    files[STATE] = FileEntry.of(path / STATE)
    versions = {"torch": torch.__version__}
    manifest = Manifest(step=step, serial=1, files=files, versions=versions)
    (path / MANIFEST).write_bytes(manifest.to_bytes())
    return path


def same(one, other):
    return one.keys() == other.keys() and all(
        a.dtype == b.dtype and torch.equal(a, b)
        for a, b in ((one[name], other[name]) for name in one)
    )


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_shards_are_the_whole(tmp_path, size):
    path = write_sharded(tmp_path, size)
    assert same(load_part(path, "model"), STATE_OF)
    assert verify(path) == []
    assert len(list(path.glob("model.shard-*-of-*.safetensors"))) == size


@pytest.mark.parametrize(("wrote", "reads"), [(2, 3), (3, 2), (9, 1)])
@pytest.mark.parametrize("is_plain", [True, False])
def test_any_number_of_ranks_reads_its_rows(tmp_path, wrote, reads, is_plain):
    path = write_sharded(tmp_path, wrote)
    if is_plain:
        assert consolidate(path)
    manifest = Manifest.read(path)
    plain = plain_parts(path, manifest)
    for rank in range(reads):
        found = read_part(path, manifest, plain, "model", rows=rows_of(rank, reads))
        assert same(found, share(rank, reads))


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_torch_reads_the_same_files(tmp_path):
    """torch.distributed.checkpoint, which names its files otherwise, puts them together, too."""
    path = write_sharded(tmp_path, 3)
    state = {name: torch.zeros_like(tensor) for name, tensor in STATE_OF.items()}
    load(state, storage_reader=HuggingFaceStorageReader(str(path)), no_dist=True)
    assert same(state, STATE_OF)


def test_made_plain_it_is_what_one_process_saves(tmp_path):
    path = write_sharded(tmp_path, 3)
    before, digest = Pointer.to(path, "best.json"), digest_of(path)
    assert consolidate(path)
    assert not consolidate(path)
    assert sorted(p.name for p in path.iterdir()) == [MANIFEST, "model.safetensors", STATE]
    assert same(load_part(path, "model"), STATE_OF)
    assert verify(path) == []
    assert digest_of(path) == digest  # and what was measured of it is not measured again
    assert before.fits(path)  # what pointed to it points to it still
    assert not replace(before, manifest_sha256="0" * 64).fits(path)

    class Whole:
        def state_dict(self):
            return STATE_OF

    whole = Checkpoints(tmp_path / "whole").save(5, {"model": Whole()})
    assert (path / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


# -- hostile


def reseal(path, change=lambda files: files):
    """Lists the files as they are now, so that only what they say is wrong."""
    files = {p.name: FileEntry.of(p) for p in path.iterdir() if p.name != MANIFEST}
    manifest = replace(Manifest.read(path), files=change(files))
    (path / MANIFEST).write_bytes(manifest.to_bytes())


def header_of(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def put(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def moved(name, first):
    def change(header):
        offsets = json.loads(header["__metadata__"]["DCP_SHARDING_INFO"])
        offsets[name]["saved_offsets"][0] = first
        header["__metadata__"]["DCP_SHARDING_INFO"] = json.dumps(offsets)

    return change


def shaped(name, **entry):
    return lambda header: header[name].update(entry)


def unsharded(header):
    header["__metadata__"]["DCP_SHARDING_INFO"] = "[]"


HEADERS = {
    "overlapping": (moved("table", 3), "'table' has rows twice: it begins at row 3, not 4"),
    "a gap": (moved("table", 6), "'table' has rows missing: it begins at row 6, not 4"),
    "far away": (moved("table", 1 << 61), "'table' has rows missing"),
    "before the first": (moved("table", -1), "its header is not one of tensors"),
    "no number": (moved("table", "4"), "its header is not one of tensors"),
    "no offsets": (unsharded, "its header is not one of tensors"),
    "another width": (shaped("table", shape=[2, 3]), "'table' is another tensor than in other"),
    "no rows": (shaped("table", shape=[]), "its header is not one of tensors"),
    "absurd": (shaped("table", shape=[1 << 40, 1 << 20]), "its header is not one of tensors"),
    "another type": (shaped("table", dtype="I32"), "'table' is another tensor than in other"),
    "no type": (shaped("table", dtype="PICKLE"), "its header is not one of tensors"),
    "elsewhere": (shaped("table", data_offsets=[8, 32]), "its header is not one of tensors"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_shard_that_says_what_cannot_be_is_refused(tmp_path, case):
    path = write_sharded(tmp_path, 2)
    change, wanted = HEADERS[case]
    file = path / shard_file("model", 2, 2)
    header, data = header_of(file)
    change(header)
    put(file, header, data)
    reseal(path)
    with pytest.raises(CheckpointError, match=f"model.shard-00002-of-00002.*{wanted}"):
        load_part(path, "model")
    with pytest.raises(CheckpointError, match=wanted):
        consolidate(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_missing_shard_is_named(tmp_path):
    path = write_sharded(tmp_path, 3)
    os.unlink(path / shard_file("model", 2, 3))
    with pytest.raises(CheckpointError, match=r"model.shard-00002-of-00003.safetensors: missing"):
        load_part(path, "model")
    reseal(path)
    wanted = "model.shard-00002-of-00003.safetensors: not in the manifest, which has other shards"
    with pytest.raises(CheckpointError, match=wanted):
        load_part(path, "model")


def test_a_changed_byte_of_any_shard_is_found(tmp_path):
    path = write_sharded(tmp_path, 2)
    for number in (1, 2):
        file = path / shard_file("model", number, 2)
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        with pytest.raises(CheckpointError, match=f"{file.name}: sha256 differs"):
            load_part(path, "model")
        data[-1] ^= 1
        file.write_bytes(data)
    assert same(load_part(path, "model"), STATE_OF)


def test_a_share_of_another_size_is_not_written(tmp_path):
    rows = {"model": lambda _: TensorRows(first=0, count=2, shape=(4,))}
    with pytest.raises(CheckpointError, match=r"'w' is \[3\], which is not a share of \[4\]"):
        write_shards(tmp_path, {"model": {"w": torch.zeros(3)}}, rows, rank=0, world_size=2)
