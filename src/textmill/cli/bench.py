"""``textmill bench --machine``: which way to compute is the fastest on this processor."""

import argparse
import sys
from dataclasses import fields

WAYS = {
    "torch_products": "float32, products by torch's own choice",
    "onednn_products": "float32, products by oneDNN",
    "fp32_attention": "bfloat16, fused attention in float32",
    "bf16_attention": "bfloat16, fused attention, too",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Measures how long a training step takes on this machine's processor in float32 and in "
        "bfloat16, by each library at hand, and keeps it in the cache folder ($TEXTMILL_CACHE, by "
        "default ~/.cache/textmill). Runs that begin from then on take the fastest way where a "
        "setting is left at auto (trainer.precision, trainer.fast.linear, trainer.fast.attention); "
        "runs that have begun keep theirs. Takes less than a minute; let nothing else run."
    )
    parser.add_argument(
        "--machine", action="store_true", required=True, help="measure the processor"
    )


def run(_: argparse.Namespace) -> int:
    print("Measuring training steps; this takes less than a minute.", file=sys.stderr)
    from textmill.models.machine_steps import measure

    found = measure()
    path, kernels = found.write(), found.kernels
    print(f"{found.processor}, torch {found.torch}, {found.threads} threads; a training step of a")
    print("translator of 2 + 2 layers and 256 features, 1,024 tokens a side:")
    for name, words in WAYS.items():
        print(f"  {words:<42}{getattr(found, name):8,.0f} ms")
    print("Settings of auto, from now on:")
    for field in fields(kernels):
        prefix = "trainer." if field.name == "precision" else "trainer.fast."
        print(f"  {prefix}{field.name}={getattr(kernels, field.name)}")
    print(f"Kept in {path}; delete it to go back to what is known of the processor's kind.")
    return 0
