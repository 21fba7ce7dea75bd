"""Commands before and beside a training: help, new, check, test, prepare, demo."""

import argparse
import shlex
import sys
import textwrap
from itertools import chain, count
from pathlib import Path

from textmill.cli.arguments import add_device, add_recipe, add_words, recipe_options
from textmill.errors import UserError
from textmill.runtime.logging import log_to_stderr, printable

ABOUT_RECIPES = ("help", "check", "test", "train")
ABOUT_RUNS = ("help", "train", "evaluate")


def add_help(parser: argparse.ArgumentParser) -> None:
    add_recipe(parser)
    parser.add_argument(
        "--all", action="store_true", help="show the settings, too, that few people change"
    )


def run_help(args: argparse.Namespace) -> int:
    """Prints the help of the recipe; exit code 2 if it is wrong, not only incomplete."""
    from textmill.cli.main import COMMANDS
    from textmill.config.help import recipe_help
    from textmill.recipes.planning import library_defaults, open_named

    source, run_folder = open_named(args.recipe, args.config, allow_code=args.allow_code)
    shown = ABOUT_RUNS if run_folder is not None else ABOUT_RECIPES
    text, problems = recipe_help(
        source.table,
        library_defaults(),
        recipe=args.recipe,
        layers=source.layers,
        words=args.words,
        everything=args.all,
        usage={name: COMMANDS[name][1] for name in shown},
        closed=source.closed,
    )
    print(text, end="")
    return 2 if problems else 0


def _add_reading(parser: argparse.ArgumentParser, of: str = "") -> None:
    """Adds what is known of a file of rows: two of its columns, and its encoding."""
    for role in ("text", "label"):
        about = f"{of}the name of the column of the {role}, or its position from 0"
        parser.add_argument(f"--{role}", metavar="COLUMN", help=about)
    parser.add_argument("--encoding", help=f"{of}its encoding, if it is not seen")


def add_new(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Of a file of rows (.csv, .tsv, .txt, .xlsx, .jsonl, .parquet, .conll, a folder of a "
        "Hugging Face data set): looks at it, and writes FILE.yaml, a recipe that textmill train "
        "runs at once, with a comment at each guess, and FILE-data.html, a report of the data. Of "
        "a NAME: writes a folder with a recipe in Python that runs as it is, a test that trains a "
        "tiny version of it, a README and generated data. Nothing is overwritten."
    )
    parser.add_argument("name", metavar="FILE|NAME", help="a file of rows, or a recipe's name")
    _add_reading(parser, "of a FILE: ")
    parser.add_argument("--train", action="store_true", help="of a FILE: train the recipe, too")
    parser.add_argument(
        "--template",
        metavar="KIND",
        help="of a NAME: translation (the default), classification, task: a task of your own, in "
        "one file, or lightning: a LightningModule, a LightningDataModule and Hydra's configs",
    )
    for kind in ("task", "lightning"):
        about = f"the same as --template {kind}"
        parser.add_argument(
            f"--{kind}", dest="template", action="store_const", const=kind, help=about
        )


def run_new(args: argparse.Namespace) -> int:
    path = Path(args.name)
    if args.template is None and (path.suffix or path.is_file() or _has_rows(path)):
        return _new_of_file(path, args)
    if options := [name for name in ("text", "label", "encoding", "train") if getattr(args, name)]:
        raise UserError(f"--{options[0]} is for a file of rows, and there is no file {args.name}.")
    from textmill.recipes.new_recipe import new_recipe

    folder = new_recipe(args.name, template=args.template or "translation")
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            print(file)
    commands = [f"textmill check {args.name}.py", f"textmill train {args.name}.py"]
    if args.template == "lightning":
        commands = ["textmill train --hydra configs/ train.yaml trainer=cpu"]
    print("\n  ".join(["\nNext:", f"cd {folder}", *commands]))
    return 0


def _has_rows(folder: Path) -> bool:
    from textmill.data.formats.by_suffix import SUFFIXES

    return folder.is_dir() and any(file.suffix.lower() in SUFFIXES for file in folder.iterdir())


def _new_of_file(path: Path, args: argparse.Namespace) -> int:
    """Writes the recipe for a file of rows and the report of its data into the working folder."""
    from textmill.data.look.facts import facts_of
    from textmill.data.look.guess import guess
    from textmill.data.look.sample import look_at
    from textmill.recipes.file_recipe import file_recipe
    from textmill.runs.report.data_page import data_lines, data_page
    from textmill.runtime.files import write_atomic

    sample = look_at(path, encoding=args.encoding)
    found = guess(sample, text=args.text, label=args.label)
    facts = facts_of(sample, found)
    text = file_recipe(path, sample, found, facts)
    stem = path.absolute().stem  # of the folder "." its name
    names = (Path(f"{stem}{end}.yaml") for end in chain([""], (f"-{n}" for n in count(2))))
    same = text.encode()
    recipe = next(p for p in names if not p.exists() or (p.is_file() and p.read_bytes() == same))
    page = Path(f"{recipe.stem}-data.html")
    write_atomic(recipe, text)
    write_atomic(page, data_page(path, sample, found, facts))
    for line in data_lines(path, sample, found, facts):
        print(printable(line))
    print(printable(f"\n{recipe}: the recipe, with a comment at each guess\n{page}: the report"))
    if args.train:
        from textmill.cli.main import main

        return main(["train", str(recipe)])
    print(printable(f"\nNext: textmill train {shlex.quote(str(recipe))}"))
    return 0


def add_fit(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Looks at a file of rows as textmill new does, trains n-grams, a small network and MiniLM "
        "(where pip install 'textmill[pretrained]' has installed it), compares them on the rows "
        "that are held out, and says which is taken, and why: the simplest that is as good as the "
        "best, by a standard error. The same command goes on where it was interrupted."
    )
    parser.add_argument("file", metavar="FILE", help="a file of rows, as textmill new takes it")
    _add_reading(parser)
    parser.add_argument(
        "--budget", default="10m", metavar="TIME", help="for all models, about (default: 10m)"
    )
    parser.add_argument(
        "--run-dir", metavar="DIR", help="the folder of the runs (default: runs/fit/FILE-KEY)"
    )
    add_device(parser)


def run_fit(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.runs.fit import fit

    asked = {name: getattr(args, name) for name in ("label", "text", "encoding", "budget")}
    fit(args.file, **asked, run_dir=args.run_dir, device=args.device)
    return 0


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plans the recipe, reads every row, and puts one real batch through module, "
        "loss, backward, metrics, checkpoint and prediction. Lists everything that is wrong."
    )
    add_recipe(parser)


def run_check(args: argparse.Namespace) -> int:
    """Checks; exit code 2 if anything is wrong."""
    from textmill.preflight.check import check

    found = check(args.recipe, args.words, **recipe_options(args), say=print)
    for note in found.notes:
        print(f"note: {note}")
    sys.stdout.flush()  # problems, on stderr, come after what was tried
    count = len(found.problems)
    if not count:
        print("Ready to train.")
        return 0
    print(f"{count} problem{'s' if count != 1 else ''}:", file=sys.stderr)
    for problem in found.problems:
        print(textwrap.indent(printable(problem), "    ").replace("    ", "  ", 1), file=sys.stderr)
    return 2


def add_test(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Builds one ingredient with everything it needs. Data is read through and "
        "measured: batches, examples, tokens a second and the share of padding; the first batch "
        "is shown by its shapes, and its first example as text and ids."
    )
    add_recipe(parser)
    parser.add_argument(
        "-f",
        "--ingredient",
        dest="ingredients",
        action="append",
        required=True,
        metavar="NAME",
        help="the ingredient, as train_data; several are tried in their order",
    )


def run_test(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.preflight.ingredient_probe import try_ingredient

    for name in args.ingredients:
        try_ingredient(args.recipe, name, args.words, **recipe_options(args))
    return 0


def add_prepare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads every row, says which are bad, and keeps the tokens where training "
        "finds them: in $TEXTMILL_CACHE, by default ~/.cache/textmill. Otherwise training does it "
        "by itself. A preparation that was stopped begins anew."
    )
    add_recipe(parser)
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read every byte of the stores that are there; a damaged one is made again",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that encode; by default as many as pay, at most 8",
    )


def run_prepare(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.preflight.prepare import prepare

    options = recipe_options(args)
    prepare(args.recipe, args.words, **options, verify=args.verify, workers=args.workers)
    return 0


def add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Trains English to French on the built-in corpus, compares it with two "
        "baselines on held-out sentences, and translates five new ones. Nothing is downloaded."
    )
    add_words(parser)
    parser.add_argument("--run-dir", metavar="DIR", help="the run folder (default: runs/…/KEY)")
    parser.add_argument("--again", action="store_true", help="train anew although the run exists")


def run_demo(args: argparse.Namespace) -> int:
    """Trains ``translation/demo``, and shows what it has learned."""
    log_to_stderr()
    import sacrebleu

    from textmill.recipes.corpus.parts import (
        five_new_sentences,
        load_corpus,
        nearest_sentence,
        word_for_word,
    )
    from textmill.runs.load_run import load
    from textmill.runs.train import train

    corpus = load_corpus()
    print(
        f"The corpus is generated from a grammar: {len(corpus.train):,} English-French pairs to "
        f"train on, {len(corpus.valid)} to select by, {len(corpus.test)} to test on; "
        "no sentence is in two parts."
    )
    done = train("translation/demo", args.words, run_dir=args.run_dir or None, again=args.again)
    english = [en for en, _ in corpus.test]
    references = [[fr for _, fr in corpus.test]]
    print("\nBLEU on the test part (sacrebleu, generated text):")
    for name, found in (
        ("word for word, dictionary", word_for_word(english, corpus.dictionary)),
        ("nearest training sentence", nearest_sentence(english, corpus.train)),
    ):
        print(f"  {name:<26} {sacrebleu.corpus_bleu(found, references).score:5.1f}")
    print(f"  {'textmill':<26} {done.result['test']['bleu']:5.1f}")
    print(f"  chrF of textmill: {done.result['test']['chrf']:.1f}")
    print("\nFive new sentences:")
    predictor = load(done.folder)
    for sentence, french in five_new_sentences():
        answer = str(predictor(sentence))
        mark = "" if answer == french else f"   (expected: {french})"
        print(f"  {sentence}  ->  {answer}{mark}")
    print(f"\nThe run folder: {done.folder}")
    print(f"Translate more: textmill predict {done.folder}")
    return 0
