"""Recurrent neural network grammars: a parser over a stack whose subtrees are vectors."""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from textmill.config.validators import require
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory
from textmill.models.decoding import Decoding, decode
from textmill.models.decoding.search_state import Hypothesis
from textmill.models.encoders.lstm import LstmEncoder, lstm_numbers
from textmill.models.encoders.sequence import real_tokens
from textmill.models.layers.linear import LinearLayer
from textmill.models.layers.word_embeddings import token_table
from textmill.models.parsers.transitions import Stacks, Transitions
from textmill.models.tagger import WordEncoder, WordFeatures
from textmill.models.vocabulary import HasVocabInfo


class ParserState(Stacks):
    """What a parser knows of sentences after some actions; a row is a sentence, or a beam of one.

    Args:
        rest: What is said from each word on, and after the last. *Shape:* :math:`(B,T+1,H)`.
        words: Each word as it lies on a stack. *Shape:* :math:`(B,T+1,D)`.
    """

    kept = (*Stacks.kept, "sentence", "nodes", "tops", "history")

    def __init__(
        self, transitions: Transitions, lengths: Tensor, *, rest: Tensor, words: Tensor
    ) -> None:
        super().__init__(transitions, lengths)
        rows, dim = len(words), words.shape[2]
        self.rest, self.words = rest, words
        self.sentence = torch.arange(rows, device=words.device)
        """The sentence of each row. *Shape:* :math:`(R)`."""
        self.nodes = words.new_zeros(rows, 1, dim)
        """The vector of each node. *Shape:* :math:`(R,N,D)`."""
        self.tops = words.new_zeros(rows, 1, 2 * dim)
        """The states of the LSTM over the stack where a node is the top. *Shape:* (R,N,2D)."""
        self.history = words.new_zeros(rows, 2, dim)
        """The states of the LSTM over actions. *Shape:* :math:`(R,2,D)`."""

    def ahead(self) -> Tensor:
        """What is said of the words that are left. *Shape:* :math:`(R,H)`."""
        return self.rest[self.sentence, self.place]


@registries.models.register("rnng")
class Rnng(WordEncoder):
    """A discriminative recurrent neural network grammar, for trees of intents and slots.

    It builds a tree by actions: open an intent or a slot, shift the next word, reduce what was
    opened last. Each is scored from three vectors: that of the stack (an LSTM), that of the words
    which are left (``model.encoder``), and that of the actions before (an LSTM). To reduce makes a
    subtree one vector, by an LSTM in both directions over its label and its children.

    Source: Dyer et al. 2016, "Recurrent Neural Network Grammars"; Gupta et al. 2018, "Semantic
    Parsing for Task Oriented Dialog using Hierarchical Representations".
    """

    class Config(WordEncoder.Config):
        dim: int = 128
        """Features of what stands on the stack, and of the states of its LSTM."""
        max_depth: int = 10
        """Most intents and slots of an answer that stand in one another."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "model", sizes=["dim", "max_depth"])

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasVocabInfo,
        labels: Sequence[str],
        **beside: Unpack[WordFeatures],
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, **beside)
        dim, size, count = config.dim, self.encoder.out_dim, len(labels) + 1
        self.transitions = Transitions(labels, max_depth=config.max_depth)
        self.no_words = nn.Parameter(torch.zeros(size))
        self.word = LinearLayer(size, dim)
        self.opened = token_table(count, dim, pad_idx=None)
        self.composition: LstmEncoder = LstmEncoder.Config(hidden_dim=dim).build(dim=dim)
        self.subtree = LinearLayer(self.composition.out_dim, dim)
        self.stack = nn.LSTMCell(dim, dim)
        self.done = token_table(count, dim, pad_idx=None)
        self.history = nn.LSTM(dim, dim, batch_first=True)
        self.summary = LinearLayer(2 * dim + size, dim)
        self.scores = LinearLayer(dim, count)

    max_length = 1_000_000
    """There are no positions."""

    @override
    def forward(self, words: Tensor, lengths: Tensor, **beside: Tensor) -> Tensor:
        """Encodes sentences, for the other methods; the arguments are those of ``states``."""
        out: Tensor = self.dropout(self.states(words, lengths, **beside))
        return out

    def log_probabilities(self, encoded: Tensor, lengths: Tensor, actions: Tensor) -> Tensor:
        """The log-probability of each action of right trees; anything at padding.

        A right action that no answer can have, since its tree is too deep, has one, too. *Shape:*
        :math:`(B,T,H)`, :math:`(B)` and :math:`(B,N)` to :math:`(B,N)`.
        """
        state, rest, allowed = self.start(self.encode(encoded, lengths)), [], []
        before = pad(actions, (1, -1), value=self.transitions.boundary)
        moves, pushed = [], [state.nodes[:, 0]]
        for action in before.unbind(dim=1):
            pushed.append(self._pushed(action, state))
            moves.append(state.push(action))
            rest.append(state.ahead())
            allowed.append(state.allowed())
        nodes = self._with_subtrees(torch.stack(pushed, dim=1), moves)
        tops = [
            self._stacked(node, below, state)
            for node, (below, *_) in zip(self.dropout(nodes).unbind(dim=1)[1:], moves, strict=True)
        ]
        with lstm_numbers(self.dropout(self.done(before))) as given:
            done, _ = self.history(given)
        scores = self._scored(torch.stack(tops, dim=1), torch.stack(rest, dim=1), done)
        right = actions[..., None]
        may_come = torch.stack(allowed, dim=1).scatter(2, right, True)
        scores = scores.masked_fill(~may_come, -torch.inf).float()
        return scores.log_softmax(dim=2).gather(2, right)[..., 0]

    def search(self, encoded: Tensor, lengths: Tensor, *, beam_size: int) -> list[Hypothesis]:
        """The likeliest actions for each sentence; shapes as in :meth:`log_probabilities`."""
        boundary = self.transitions.boundary
        # A word is shifted, and so many nodes at most begin at it, each of which is reduced.
        most = 1 + 2 * self.config.max_depth
        how = Decoding(beam_size=beam_size, length_penalty=0.0, max_length_a=most, max_length_b=1)
        found = decode(self, encoded, lengths, how, prefix=[boundary], eos_idx=boundary)
        return [best for best, *_ in found]

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        """What a search reads from, of sentences that :meth:`forward` has encoded."""
        assert source_lengths is not None
        real = real_tokens(pad(source, (0, 0, 0, 1)), source_lengths)
        rest = torch.where(real[..., None], pad(source, (0, 0, 0, 1)), self.no_words)
        return DecoderMemory(rest, real)

    def start(self, memory: DecoderMemory) -> ParserState:
        assert memory.mask is not None
        words = self.word(memory.states).tanh()
        return ParserState(
            self.transitions, memory.mask.sum(dim=1), rest=memory.states, words=words
        )

    def step(self, tokens: Tensor, state: ParserState) -> Tensor:
        """Reads an action of each row, and scores the next; -inf if it may not come.

        *Shape:* :math:`(R)` to :math:`(R,A+1)`.
        """
        node = self._pushed(tokens, state)
        below, innermost, children = state.push(tokens)
        if len(rows := children.any(dim=1).nonzero()[:, 0]):
            whole = self._composed(state.nodes[rows], innermost[rows], children[rows])
            node = node.index_put((rows,), whole.to(node.dtype))
        state.nodes = torch.cat([state.nodes, node[:, None]], dim=1)
        top, before = self._stacked(node, below, state), state.history.transpose(0, 1)[:, None]
        with lstm_numbers(self.done(tokens[:, None])) as given:
            before = before.to(given.dtype)
            done, after = self.history(given, (before[0], before[1]))
        state.history = torch.cat(after).transpose(0, 1)
        scores = self._scored(top, state.ahead(), done[:, 0])
        return scores.masked_fill(~state.allowed(), -torch.inf)

    def _pushed(self, actions: Tensor, state: ParserState) -> Tensor:
        """The nodes that actions push, but those that are reduced. *Shape:* (R) to (R,D)."""
        shifts = (actions == self.transitions.shift)[:, None]
        return torch.where(shifts, state.words[state.sentence, state.place], self.opened(actions))

    def _with_subtrees(self, nodes: Tensor, moves: Sequence[tuple[Tensor, ...]]) -> Tensor:
        """Nodes with those that were reduced: all of one height at once. *Shape:* (B,N,D)."""
        height = torch.zeros_like(nodes[..., 0], dtype=torch.int64)
        for number, (_, _, children) in enumerate(moves, start=1):
            inside = (height[:, :number] + 1) * children
            height[:, number] = inside.amax(dim=1)
        opened = torch.stack([innermost for _, innermost, _ in moves], dim=1)
        reduced = [pad(children, (0, nodes.shape[1] - children.shape[1])) for *_, children in moves]
        children = torch.stack(reduced, dim=1)
        for level in range(1, int(height.max()) + 1 if height.numel() else 1):
            rows, numbers = (height == level).nonzero(as_tuple=True)
            which = rows, numbers - 1
            whole = self._composed(nodes[rows], opened[which], children[which])
            nodes = nodes.index_put((rows, numbers), whole.to(nodes.dtype))
        return nodes

    def _composed(self, nodes: Tensor, opened: Tensor, children: Tensor) -> Tensor:
        """Subtrees as vectors. *Shape:* (R,N,D), (R) and (R,N) to (R,D)."""
        count, (rows, size, dim) = children.sum(dim=1), nodes.shape
        # The open node with its label comes first, then its children in their order.
        order = torch.arange(size, device=nodes.device).expand(rows, -1)
        order = torch.where(children, order, size - 1).sort(dim=1).values
        order = torch.cat([opened[:, None], order[:, : int(count.max())]], dim=1)
        parts = nodes.gather(1, order[..., None].expand(-1, -1, dim))
        read, every = self.composition(parts, count + 1), torch.arange(rows, device=nodes.device)
        # Each direction's state where it has read all.
        ends = torch.cat([read[every, count, :dim], read[:, 0, dim:]], dim=1)
        out: Tensor = self.subtree(ends).tanh()
        return out

    def _stacked(self, nodes: Tensor, below: Tensor, state: ParserState) -> Tensor:
        """The LSTM over the stack, after it reads nodes. *Shape:* (R,D) and (R) to (R,D)."""
        every = torch.arange(len(nodes), device=nodes.device)
        top: Tensor
        top, memory = self.stack(nodes, state.tops[every, below].chunk(2, dim=1))
        state.tops = torch.cat([state.tops, torch.cat([top, memory], dim=1)[:, None]], dim=1)
        return top

    def _scored(self, *read: Tensor) -> Tensor:
        summary = self.summary(self.dropout(torch.cat(read, dim=-1))).tanh()
        scores: Tensor = self.scores(self.dropout(summary))
        return scores
