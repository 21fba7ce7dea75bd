"""Models of lists of texts: a padded batch is what each text, and each list of them, is alone."""

import numpy as np
import pytest
import torch

from textmill.errors import UserError
from textmill.models.classifier import Classifier, TextsConfig
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import AveragingEncoder, CnnEncoder, real_tokens
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.tagger import IntentSlotModel, Tagger, TextTagger
from textmill.text.columns.column import padded_columns
from textmill.text.columns.texts import TextsColumn
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

WORDS = WordTokenizer.Config(words=("a", "b", "c", "d")).build()
LISTS = [["a b c d a", "b"], ["c"], ["", "a a", "d c b", "x"], ["b a"]]
EMBEDDING = WordEmbedding.Config(dim=6)
ENCODERS = {
    "cnn": CnnEncoder.Config(filters=5, widths=(2, 3)),
    "lstm": LstmEncoder.Config(hidden_dim=4),
    "averaging": AveragingEncoder.Config(),
    "self_attention": SelfAttentionEncoder.Config(num_layers=1, num_heads=2, ffn_dim=8),
}
LABELS = ["x", "y", "z"]


def ids_of(lists):
    column = TextsColumn("c", WORDS, length=10)
    columns, lengths = padded_columns(
        {"text": column.encode(lists)}, {"text": column}, np.arange(len(lists))
    )
    return torch.from_numpy(columns["text"]), torch.from_numpy(lengths["text"])


def alone(text, texts, encoder):
    """States of one list, each text of which is read by itself, without any padding."""
    rows = [WORDS.create_encoder()(each).tolist() or [1] for each in texts]
    vectors = [text(torch.tensor([row]), torch.tensor([len(row)])) for row in rows]
    return encoder(torch.stack(vectors, dim=1), torch.tensor([len(rows)]))


@pytest.mark.parametrize("outer", [name for name in ENCODERS if name != "self_attention"])
@pytest.mark.parametrize("inner", ENCODERS)
def test_a_batch_is_each_list_alone(inner, outer):
    torch.manual_seed(0)
    parts = {"embedding": EMBEDDING, "encoder": ENCODERS[inner], "sequence": ENCODERS[outer]}
    ids, lengths = ids_of(LISTS)
    assert ids.shape == (4, 4, 5)
    assert lengths.tolist() == [2, 1, 4, 1]
    classifier = Classifier.Config(**parts).build(tokenizer=WORDS, labels=LABELS).double().eval()
    tagger = TextTagger.Config(**parts).build(tokenizer=WORDS, labels=LABELS).double().eval()
    with torch.no_grad():
        scores, tags = classifier(ids, lengths), tagger(ids, lengths)
        for number, texts in enumerate(LISTS):
            read = classifier.text
            states = alone(read.text, texts, read.encoder)
            real = real_tokens(states, torch.tensor([len(texts)]))
            wanted = classifier.scores(read.pooling(states, real))[0]
            torch.testing.assert_close(scores[number], wanted, rtol=0, atol=1e-6)
            states = alone(tagger.text, texts, tagger.encoder)
            wanted = tagger.scores(states)[0]
            torch.testing.assert_close(tags[number, : len(texts)], wanted, rtol=0, atol=1e-6)


def test_without_a_cpu_all_places_are_computed_and_give_the_same(monkeypatch):
    torch.manual_seed(0)
    model = Classifier.Config(sequence=ENCODERS["lstm"]).build(tokenizer=WORDS, labels=LABELS)
    ids, lengths = ids_of(LISTS)
    wanted = model.eval()(ids, lengths)
    monkeypatch.setattr("torch.compiler.is_exporting", lambda: True)
    monkeypatch.setattr(LstmEncoder, "_graph", lambda self, x, n: self.read(x, n)[0])
    torch.testing.assert_close(model(ids, lengths), wanted)


def test_slots_and_intents_know_the_texts_around():
    torch.manual_seed(0)
    config = IntentSlotModel.Config(
        embedding=EMBEDDING, context=TextsConfig(embedding=EMBEDDING, encoder=ENCODERS["cnn"])
    )
    model = config.build(tokenizer=WORDS, labels=LABELS, slots=["O", "B-x", "I-x"]).eval()
    words, lengths = torch.tensor([[2, 3]]), torch.tensor([2])
    one, other = (model(words, lengths, context=ids_of([said])[0]) for said in (["a"], ["b", "a"]))
    assert all((a - b).abs().max() > 1e-4 for a, b in zip(one, other, strict=True))
    with pytest.raises(UserError, match=r"^task.context names the column .* only one of them"):
        model(words, lengths)


def test_a_model_of_the_other_kind_says_what_to_set():
    ids, lengths = ids_of(LISTS)
    plain = Classifier.Config(embedding=EMBEDDING).build(tokenizer=WORDS, labels=LABELS)
    words = Tagger.Config(embedding=EMBEDDING).build(tokenizer=WORDS, labels=LABELS)
    for model in (plain, words):
        with pytest.raises(
            UserError, match=r"^The model reads one text of each row, but the task gi"
        ):
            model(ids, lengths)
    several = Classifier.Config(sequence=ENCODERS["lstm"]).build(tokenizer=WORDS, labels=LABELS)
    with pytest.raises(UserError, match=r"^The model reads a list .* gives it one text\. Lists "):
        several(ids[:, 0], lengths)
    with pytest.raises(UserError, match=r"^model.sequence reads the vectors of texts"):
        Classifier.Config(sequence=PretrainedEncoder.Config()).build(tokenizer=WORDS, labels=LABELS)
