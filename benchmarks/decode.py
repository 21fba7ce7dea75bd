"""Decoding: weft beside ``transformers`` generate and CTranslate2, on the same work in one run.

    python benchmarks/decode.py --data train.tsv --beam 5 --threads 2

The work: 1,000 sentences of the data in batches of 32 sorted by length, exactly 32 new tokens each,
models of one size with untrained weights (dimension 128, 4 + 4 layers, 5,000 pieces). The peers
take turns, batch by batch, so that what else the machine does hits all alike; a repetition is all
batches. Printed are the medians over repetitions, and the medians of their ratios to transformers:
of wall-clock time, and of CPU time, which is what counts where other processes run (one thread).
At the end stands a line of JSON. A peer that is not installed is left out with a line that says so.
"""

import argparse
import importlib.util
import json
import os
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from weft.models.decoding import Decoding, decode
from weft.models.transformer import Transformer

PAD, UNK, BOS, EOS, VOCABULARY = 0, 1, 2, 3, 5000
DIM, LAYERS, HEADS, FFN = 128, 4, 4, 512
NEW, BATCH = 32, 32

Rows = list[list[int]]
Peer = Callable[[Rows], Rows]


def sources(data: Path, cache: Path, count: int) -> list[Rows]:
    """The ids of ``count`` English sentences in sorted batches."""
    import sentencepiece

    cache.mkdir(parents=True, exist_ok=True)
    model = cache / f"decode-{data.stat().st_size}.model"
    with data.open(encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t")[:2] for line in file]
    pairs = [pair for pair in pairs if len(pair) == 2 and pair[0]]
    random.Random(0).shuffle(pairs)
    if not model.exists():
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(side for pair in pairs[count:] for side in pair),
            model_prefix=str(model)[: -len(".model")],
            vocab_size=VOCABULARY,
            hard_vocab_limit=False,  # a small file has fewer
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            minloglevel=2,
        )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    rows = sorted(pieces.encode([p[0] for p in pairs[:count]], add_eos=True), key=len)
    return [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]


def padded(rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and their lengths."""
    tensors = [torch.tensor(row) for row in rows]
    ids = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD)
    return ids, torch.tensor([len(row) for row in rows])


def our_model() -> Transformer:
    """The model that weft and CTranslate2 decode."""
    torch.manual_seed(0)
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=VOCABULARY, pad_idx=PAD))
    sizes = {"num_encoder_layers": LAYERS, "num_decoder_layers": LAYERS, "ffn_dim": FFN}
    config = Transformer.Config(dim=DIM, num_heads=HEADS, **sizes)
    model: Transformer = config.build(tokenizer=tokenizer)
    return model.eval()


def weft_peer(beam: int, model: Transformer) -> Peer:
    forced = {"max_length_a": 0.0, "max_length_b": NEW, "min_length": NEW}
    decoding = Decoding(beam_size=beam, **forced)

    def run(rows: Rows) -> Rows:
        found = decode(model, *padded(rows), decoding, prefix=[BOS], eos_idx=EOS)
        return [row[0].ids for row in found]

    return run


def transformers_peer(beam: int) -> Peer:
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=DIM,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=FFN,
        decoder_ffn_dim=FFN,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()

    def run(rows: Rows) -> Rows:
        ids, _ = padded(rows)
        made = model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=beam,
            min_new_tokens=NEW,
            max_new_tokens=NEW,
            do_sample=False,
            early_stopping=False,
        )
        return made[:, 1:].tolist()

    return run


def ctranslate2_peer(beam: int, threads: int, model: Transformer) -> Peer:
    """The weights of :func:`our_model` in CTranslate2."""
    import ctranslate2
    from ctranslate2.specs import common_spec, transformer_spec

    spec = transformer_spec.TransformerSpec.from_config(
        (LAYERS, LAYERS), HEADS, pre_norm=True, activation=common_spec.Activation.RELU
    )

    def linear(target: Any, module: Any) -> None:
        target.weight = module.weight.detach().numpy()
        target.bias = module.bias.detach().numpy()

    def norm(target: Any, module: Any) -> None:
        target.gamma, target.beta = module.weight.detach().numpy(), module.bias.detach().numpy()

    table = model.output_weight.detach().numpy()
    for side, stack, front in (
        (spec.encoder, model.encoder, model.source),
        (spec.decoder, model.decoder, model.target),
    ):
        embeddings = side.embeddings[0] if side is spec.encoder else side.embeddings
        embeddings.weight = table
        side.position_encodings.encodings = front.positions.table.numpy()
        side.scale_embeddings = True
        norm(side.layer_norm, stack.norm)
        for target, layer in zip(side.layer, stack.layers, strict=True):
            norm(target.self_attention.layer_norm, layer.attention_residual.norm)
            linear(target.self_attention.linear[0], layer.attention.qkv)
            linear(target.self_attention.linear[1], layer.attention.out)
            if side is spec.decoder:
                norm(target.attention.layer_norm, layer.cross_attention_residual.norm)
                linear(target.attention.linear[0], layer.cross_attention.q)
                linear(target.attention.linear[1], layer.cross_attention.kv)
                linear(target.attention.linear[2], layer.cross_attention.out)
            norm(target.ffn.layer_norm, layer.feed_forward_residual.norm)
            linear(target.ffn.linear_0, layer.feed_forward.inner)
            linear(target.ffn.linear_1, layer.feed_forward.outer)
    spec.decoder.projection.weight = table
    pieces = [
        str(i) if i > EOS else ("<pad>", "<unk>", "<s>", "</s>")[i] for i in range(VOCABULARY)
    ]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_eos = False
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    number = {piece: i for i, piece in enumerate(pieces)}
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        translator = ctranslate2.Translator(
            folder, device="cpu", intra_threads=threads, inter_threads=1
        )

    def run(rows: Rows) -> Rows:
        found = translator.translate_batch(
            [[pieces[i] for i in row] for row in rows],
            beam_size=beam,
            max_batch_size=BATCH,
            min_decoding_length=NEW,
            max_decoding_length=NEW,
        )
        return [[number[piece] for piece in row.hypotheses[0]] for row in found]

    return run


def measured(peers: dict[str, Peer], batches: list[Rows], repetitions: int) -> dict[str, Any]:
    """Seconds of all batches by peer and repetition: of the clock and of the processor."""
    times: dict[str, Any] = {name: [] for name in peers}
    for run in peers.values():
        run(batches[0])
    for _ in range(repetitions):
        sums = {name: [0.0, 0.0] for name in peers}
        for batch in batches:
            for name, run in peers.items():
                wall, cpu = time.perf_counter(), time.process_time()
                made = run(batch)
                sums[name][0] += time.perf_counter() - wall
                sums[name][1] += time.process_time() - cpu
                assert all(len(row) == NEW for row in made), name
        for name, pair in sums.items():
            times[name].append(pair)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="TSV file: English, French")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "weft-bench")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)
    batches = sources(args.data, args.cache, args.sentences)
    model = our_model()
    makers: dict[str, Callable[[], Peer]] = {
        "transformers": lambda: transformers_peer(args.beam),
        "weft": lambda: weft_peer(args.beam, model),
        "ctranslate2": lambda: ctranslate2_peer(args.beam, args.threads, model),
    }
    peers = {}
    for name, make in makers.items():
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed; it is left out.")
        else:
            peers[name] = make()
    if "ctranslate2" in peers:
        same = [
            a == b
            for a, b in zip(*(peers[n](batches[0]) for n in ("weft", "ctranslate2")), strict=True)
        ]
        print(f"weft and ctranslate2, the same weights: {sum(same)} of {len(same)} rows alike")
    times = measured(peers, batches, args.repetitions)
    tokens = NEW * sum(map(len, batches))
    base = times.get("transformers", times["weft"])
    result: dict[str, Any] = {"bench": "decode", "beam": args.beam, "threads": args.threads}
    print(f"beam {args.beam}, {args.threads} threads: tokens a second, and times the first peer")
    print(f"{'peer':14}{'clock':>10}{'times':>8}{'CPU':>10}{'times':>8}")
    for name, found in times.items():
        speeds = [statistics.median(tokens / pair[i] for pair in found) for i in (0, 1)]
        ratios = [
            statistics.median(b[i] / a[i] for a, b in zip(found, base, strict=True)) for i in (0, 1)
        ]
        result[name] = {
            "tok_s": round(speeds[0]),
            "ratio": round(ratios[0], 3),
            "tok_cpu_s": round(speeds[1]),
            "cpu_ratio": round(ratios[1], 3),
        }
        print(f"{name:14}{speeds[0]:10.0f}{ratios[0]:8.2f}{speeds[1]:10.0f}{ratios[1]:8.2f}")
    print(json.dumps({**result, "load": round(os.getloadavg()[0], 2)}))


if __name__ == "__main__":
    main()
