"""The program of one encoding worker: ``python -m textmill.data.store.worker FOLDER``."""

import signal
import sys
from pathlib import Path

from textmill.data.store.encoding import receive_rows, send_encoded
from textmill.text.processors.text_processor import load_text_processor


def main() -> None:
    """Encodes what comes in until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    text = load_text_processor(Path(sys.argv[1]))
    while (rows := receive_rows(sys.stdin.buffer)) is not None:
        send_encoded(sys.stdout.buffer, text.encode(rows, with_targets=True))


if __name__ == "__main__":
    main()
