"""``textmill new NAME``: a recipe to begin with, a task, or a project of Lightning and Hydra."""

import argparse


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Writes a folder NAME with a recipe that runs as it is, a test that trains a "
        "tiny version of it, a README and generated data. Nothing is overwritten."
    )
    parser.add_argument("name", help="what the recipe is called")
    parser.add_argument(
        "--template",
        default="translation",
        metavar="KIND",
        help="translation (the default), classification, task: a task of your own, in one file, or "
        "lightning: a LightningModule, a LightningDataModule and Hydra's configs",
    )
    parser.add_argument(
        "--task",
        dest="template",
        action="store_const",
        const="task",
        help="the same as --template task",
    )
    parser.add_argument(
        "--lightning",
        dest="template",
        action="store_const",
        const="lightning",
        help="the same as --template lightning",
    )


def run(args: argparse.Namespace) -> int:
    """Writes it and says what to type next."""
    from textmill.recipes.new_recipe import new_recipe

    folder = new_recipe(args.name, template=args.template)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            print(path)
    commands = [f"textmill check {args.name}.py", f"textmill train {args.name}.py"]
    if args.template == "lightning":
        commands = ["textmill train --hydra configs/ train.yaml trainer=cpu"]
    print("\n  ".join(["\nNext:", f"cd {folder}", *commands]))
    return 0
