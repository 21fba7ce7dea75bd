"""What ``textmill predict`` says of a PDF: which pipeline's command reads it for this model."""

from pathlib import Path

from textmill.errors import UserError

COMMANDS_OF = {
    "reference-parser": "parse-references",
    "dataset-mentions": "find-datasets",
    "summarizer": "summarize",
}
"""The command of each pipeline."""


def refuse_pdf(head: bytes, name: str, model: str) -> None:
    """Refuses a PDF, with the commands of the pipelines that are for the model's task.

    Args:
        head: How the file begins.
        name: What it is called; ``-`` is standard input.
        model: The run or the export that is asked.
    """
    from textmill.pipelines.given_text import is_pdf

    if not is_pdf(head):
        return
    from textmill.data.line_blocks import refuse_binary
    from textmill.pipelines.find_model import task_of
    from textmill.pipelines.registries import pipelines

    task, kind = task_of(Path(model))
    fitting = list[str]()
    for pipeline, command in COMMANDS_OF.items():
        tasks = pipelines.get(pipeline).wanted.tasks
        if task in tasks or (task is None and kind in tasks.values()):
            fitting.append(f"textmill {command} {name} --model {model}")
    said = "standard input" if name == "-" else name
    if fitting:
        ways = ", or ".join(fitting)
        raise UserError(f"{said}: wanted rows of text, found a PDF. A pipeline reads it: {ways}")
    refuse_binary(head, said)
