"""The demonstration: a translator from nothing, judged against two baselines, in a few minutes."""

from collections.abc import Callable, Sequence
from pathlib import Path

import sacrebleu

from weft.recipes.corpus.baselines import nearest_sentence, word_for_word
from weft.recipes.corpus.parts import Corpus, five_new_sentences, load_corpus
from weft.runs.load_run import load
from weft.runs.train import Run, train

__all__ = ["demo"]


def demo(
    words: Sequence[str] = (),
    *,
    run_dir: Path | None = None,
    again: bool = False,
    say: Callable[[str], None] = print,
) -> Run:
    """Trains ``translation/demo``, and says what it has learned; as ``train`` takes its words."""
    corpus = load_corpus()
    say(
        f"The corpus is generated from a grammar: {len(corpus.train):,} English-French pairs to "
        f"train on, {len(corpus.valid)} to select by, {len(corpus.test)} to test on; "
        "no sentence is in two parts."
    )
    run = train("translation/demo", words, run_dir=run_dir, again=again)
    say("")
    say("BLEU on the test part (sacrebleu, generated text):")
    for name, bleu in [*baselines(corpus), ("weft", run.result["test"]["bleu"])]:
        say(f"  {name:<26} {bleu:5.1f}")
    say(f"  chrF of weft: {run.result['test']['chrf']:.1f}")
    say("")
    say("Five new sentences:")
    predictor = load(run.folder)
    for english, french in five_new_sentences():
        answer = str(predictor(english))
        mark = "" if answer == french else f"   (expected: {french})"
        say(f"  {english}  ->  {answer}{mark}")
    say("")
    say(f"The run folder: {run.folder}")
    say(f"Translate more: weft predict {run.folder}")
    return run


def baselines(corpus: Corpus) -> list[tuple[str, float]]:
    """BLEU of two ways to translate without learning, on the test part."""
    english = [en for en, _ in corpus.test]
    references = [[fr for _, fr in corpus.test]]
    ways = {
        "word for word, dictionary": word_for_word(english, corpus.dictionary),
        "nearest training sentence": nearest_sentence(english, corpus.train),
    }
    return [(n, sacrebleu.corpus_bleu(found, references).score) for n, found in ways.items()]
