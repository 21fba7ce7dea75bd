"""What TensorBoard itself reads of a folder."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def scalars(folder: Path) -> dict[str, list[tuple[int, str]]]:
    """Step and value of every event by tag; rates are left out, since the clock decides them."""
    reader = EventAccumulator(str(folder))
    reader.Reload()
    return {
        tag: [(event.step, repr(event.value)) for event in reader.Scalars(tag)]
        for tag in sorted(reader.Tags()["scalars"])
        if not tag.startswith("time/")
    }
