"""A tagger of words: vectors of words and their characters, an encoder, and scores of labels."""

from collections.abc import Sequence

from torch import Tensor, nn
from typing_extensions import override

from weft.models import registries
from weft.models.crf import LinearChainCrf
from weft.models.layers.word_embeddings import AffixInfo
from weft.models.vocabulary import HasSize, HasWordVocabInfo, ModelVocabInfo
from weft.models.word_encoder import WordEncoder

__all__ = ["Tagger"]


@registries.models.register("tagger")
class Tagger(WordEncoder):
    """Scores the labels of each word of a text; with ``model.crf``, of whole sequences of labels.

    With characters and a conditional random field it is the network of Ma and Hovy 2016, without
    characters that of Huang, Xu and Yu 2015; ``model.encoder.type=self_attention`` is a Transformer
    encoder.

    Attributes:
        crf: What joins the scores of words to those of sequences; None: each word for itself.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0, unk_idx=1))
        >>> model = Tagger.Config(crf=True).build(tokenizer=tokenizer, labels="abcdef")
        >>> model(torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1])).shape
        torch.Size([2, 3, 6])
        >>> sum(p.numel() for p in model.parameters())
        39658
    """

    class Config(WordEncoder.Config):
        """Settings of the tagger."""

    config: Config
    crf: LinearChainCrf | None

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasWordVocabInfo,
        labels: Sequence[str],
        characters: ModelVocabInfo | None = None,
        affixes: AffixInfo | None = None,
        dictionary: HasSize | None = None,
    ) -> None:
        super().__init__(
            config,
            tokenizer=tokenizer,
            characters=characters,
            affixes=affixes,
            dictionary=dictionary,
        )
        self.scores = nn.Linear(self.encoder.out_dim, len(labels))
        self.crf = LinearChainCrf(labels, constrained=config.constrained) if config.crf else None

    @override
    def forward(self, words: Tensor, lengths: Tensor, **beside: Tensor) -> Tensor:
        """Scores the labels of each word by itself; ``crf`` makes sequences of them.

        Args:
            words: Ids. *Shape:* :math:`(B,T)`.
            lengths: Real words of each row, 0 or more. *Shape:* :math:`(B)`.
            beside: What stands beside words, where the model was made for such, as
                :meth:`states` takes it.

        Returns:
            Unnormalized scores, anything at padding. *Shape:* :math:`(B,T,L)`.
        """
        states = self.states(words, lengths, **beside)
        out: Tensor = self.scores(self.dropout(states))[:, : words.shape[1]]
        return out
