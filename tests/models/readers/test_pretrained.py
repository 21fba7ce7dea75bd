"""The pretrained reader: one text of question and context, as transformers reads it."""

import pytest
import torch
import transformers

from tests.pretrained_checkpoints import save_encoder
from textmill.errors import UserError
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.readers.pretrained import PretrainedReader
from textmill.text.features.passages import read_passages
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

QUESTIONS = ["who sat?", "", "what barks at the moon"]
CONTEXTS = ["the cat sat on the mat", "dogs bark", "Fabulous films, aren't they?"]


def reader(folder, tokenizer):
    encoder = PretrainedEncoder.Config(path=str(folder))
    made = PretrainedReader.Config(encoder=encoder, no_answer=True).build(tokenizer=tokenizer)
    made.encoder.begin()
    return made.eval()


def padded(rows, pad):
    lengths = torch.tensor([*map(len, rows)])
    filled = [row + [pad] * (int(lengths.max()) - len(row)) for row in rows]
    return torch.tensor(filled), lengths


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_scores_are_of_the_vectors_that_transformers_gives(tmp_path, family):
    folder = save_encoder(tmp_path / family, family, max_position_embeddings=150)
    tokenizer = PretrainedTokenizer.Config(path=folder / "tokenizer.json").build()
    module, pad = reader(folder, tokenizer), tokenizer.vocab_info.pad_idx
    asked, given = (
        [[*passage.ids] for passage in read_passages(tokenizer, texts)]
        for texts in (QUESTIONS, CONTEXTS)
    )
    oracle = transformers.AutoModel.from_pretrained(folder).eval()
    bos, eos = tokenizer.vocab_info.bos_idx, tokenizer.vocab_info.eos_idx
    between = [eos, eos] if family == "roberta" else [eos]
    with torch.no_grad():
        found = module(*padded(asked, pad), *padded(given, pad))
        for number, (one, two) in enumerate(zip(asked, given, strict=True)):
            ids = [bos, *one, *between, *two, eos]
            types = [0] * (len(ids) - len(two) - 1) + [1] * (len(two) + 1)
            typed = {"token_type_ids": torch.tensor([types])} if family == "bert" else {}
            states = oracle(input_ids=torch.tensor([ids]), **typed).last_hidden_state[0]
            wanted = module.scores(states[-len(two) - 1 : -1])
            got = torch.stack([found.start, found.end], -1)[number, : len(two)]
            torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(found.none[number : number + 1], module.none(states[0]))


def test_an_empty_context_is_read_and_one_that_is_too_long_is_refused(tmp_path):
    folder = save_encoder(tmp_path / "bert", "bert")
    tokenizer = PretrainedTokenizer.Config(path=folder / "tokenizer.json").build()
    module, none = reader(folder, tokenizer), torch.zeros(1, 0, dtype=torch.long)
    scores = module(none, torch.tensor([0]), none, torch.tensor([0]))
    assert scores.start.shape == (1, 1)
    module.check_lengths(16, 20)
    with pytest.raises(UserError, match="may have 41 tokens, 4 marks among them, but the module"):
        module.check_lengths(17, 20)
