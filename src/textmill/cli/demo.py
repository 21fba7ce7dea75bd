"""``textmill demo``: a translator from nothing, judged against two baselines, in a few minutes."""

import argparse

from textmill.cli.arguments import add_words
from textmill.runtime.logging import log_to_stderr


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Trains English to French on the built-in corpus, compares it with two "
        "baselines on held-out sentences, and translates five new ones. Nothing is downloaded."
    )
    add_words(parser)
    parser.add_argument("--run-dir", metavar="DIR", help="the run folder (default: runs/…/KEY)")
    parser.add_argument("--again", action="store_true", help="train anew although the run exists")


def run(args: argparse.Namespace) -> int:
    """Trains ``translation/demo``, and shows what it has learned."""
    log_to_stderr()
    import sacrebleu

    from textmill.recipes.corpus.baselines import nearest_sentence, word_for_word
    from textmill.recipes.corpus.parts import five_new_sentences, load_corpus
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
