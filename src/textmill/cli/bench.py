"""``textmill bench --machine``: which way to compute is the fastest on this processor."""

import argparse
import sys
from dataclasses import fields

from textmill.errors import StorageError

STEPS = {
    "fp32_torch": "float32, products by torch's own choice",
    "fp32_onednn": "float32, products by oneDNN",
    "bf16_but_attention": "bfloat16, attention in float32",
    "bf16": "bfloat16, attention in bfloat16, too",
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
    from textmill.preflight.machine_steps import FEATURES, TOKENS, measure
    from textmill.runtime.files import cache_folder, make_folder
    from textmill.runtime.machine import STEADY

    try:
        make_folder(cache_folder())
    except (StorageError, RuntimeError) as error:  # Python finds no home
        raise StorageError(
            f"{error}\nThe environment variable TEXTMILL_CACHE names another cache folder."
        ) from error
    print("Measuring training steps; this takes less than a minute.", file=sys.stderr)
    found = measure()
    print(f"{found.processor}, torch {found.torch}, threads: {found.threads}")
    print(f"A training step of a translator of {FEATURES} features, {TOKENS:,} tokens a side:")
    for name, words in STEPS.items():
        print(f"  {words:<42}{getattr(found, name):8,.0f} ms")
    if found.spread > STEADY:
        print(
            f"The same step took {found.spread:.1f} times as long at times: other programs were at "
            "work. Measure again when they are not.",
            file=sys.stderr,
        )
    path = found.write()
    print("Runs that begin from now on compute with these, where a setting is auto:")
    for field in fields(kernels := found.kernels):
        prefix = "trainer." if field.name == "precision" else "trainer.fast."
        print(f"  {prefix}{field.name}={getattr(kernels, field.name)}")
    print(f"Kept in {path}. Without that file they are chosen by the kind of the processor.")
    return 0
