"""What the services' own readers see of what reporters gave them."""

import json
import struct
import time

BLOCK = 32_768


def tensorboard_values(folder, run):
    """Step and value by name, as TensorBoard shows them, but for rates."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(str(folder))
    reader.Reload()
    return {
        tag: [(event.step, repr(event.value)) for event in reader.Scalars(tag)]
        for tag in sorted(reader.Tags()["scalars"])
        if not tag.startswith("time/")
    }


def mlflow_values(folder, run):
    """Step and value by name, in a local store."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"file:{folder / 'mlruns'}")
    return {
        name: [(m.step, repr(m.value)) for m in client.get_metric_history(run, name)]
        for name in sorted(client.get_run(run).data.metrics)
        if not name.startswith("time/")
    }


def trackio_values(folder, run):
    """Step and value by name, in trackio's local database."""
    from trackio.sqlite_storage import SQLiteStorage

    values = {}
    for row in SQLiteStorage.get_logs("textmill", run):
        for name, value in row.items():
            if "/" in name and not name.startswith("time/"):
                values.setdefault(name, []).append((row["step"], repr(float(value))))
    return dict(sorted(values.items()))


def wandb_values(folder, run):
    """Step and value by name, of all offline files of a run.

    A value that is in two of them counts once: W&B takes what it counts as a step once.
    """
    values = {}
    for record in _wandb_records(folder, run):
        if record.HasField("history"):
            items = {
                item.key or ".".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            for name, value in items.items():
                if not name.startswith(("time/", "_")):
                    values.setdefault(name, set()).add((items["_step"], repr(float(value))))
    return {name: sorted(steps) for name, steps in sorted(values.items())}


READ = {
    "mlflow": mlflow_values,
    "tensorboard": tensorboard_values,
    "trackio": trackio_values,
    "wandb": wandb_values,
}


def _wandb_records(folder, run):
    """All records, once the newest file ends: wandb's own process writes it a moment later."""
    from wandb.proto.wandb_internal_pb2 import Record

    for _ in range(100):
        files = sorted(folder.glob(f"wandb/offline-run-*-{run}/*.wandb"))
        records = [
            [Record.FromString(data) for data in _records(path.read_bytes())] for path in files
        ]
        if records and records[-1] and records[-1][-1].HasField("exit"):
            break
        time.sleep(0.1)
    return [record for of_file in records for record in of_file]


def _records(content):
    """The records of a file in LevelDB's log format, after 7 bytes of wandb's own."""
    place, parts, found = 7, b"", []
    while place + 7 <= len(content):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        parts += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            found.append(parts)
            parts = b""
    return found
