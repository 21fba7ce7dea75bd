"""Exports that CTranslate2 runs: models that translate texts, and that continue them."""

import copy
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.exported.manifest import GRAPH, TEXT, ExportError
from textmill.exported.row_predictor import AnswerOptions, ExportedPredictor, Row, RowPredictor
from textmill.exported.seq2seq import (
    LARGEST_BEAM,
    ROWS,
    Forced,
    Found,
    Search,
    by_length,
    translated,
    with_copied,
)
from textmill.runtime.devices import usable_cores
from textmill.runtime.files import parse_json, read_all
from textmill.text.answers import Translated
from textmill.text.processors.language_model import Continued, LanguageText
from textmill.text.processors.seq2seq import (
    CHARACTERS_A_TOKEN,
    Seq2SeqText,
    prefix_ids,
    prefix_of,
    source_text,
)
from textmill.text.processors.text_processor import load_text_processor
from textmill.text.tokenizers.tokenizer import VocabInfo

SHORT = 1 << 16
"""Bytes of a file beside the graph, besides 64 for each word of the vocabulary."""
LEAST_ROWS = 8
"""Rows that a thread searches together at least: their products are one."""
PATIENCE = 3.0
"""Times ``beam_size`` sequences are finished before a search ends whose own end CTranslate2 does
not know (``heuristic``, ``never``). With 3, beam 5 gave textmill's own answers to 500 of 500
sentences of Tatoeba; with random weights 3 found textmill's in 480 of 480 searches, 1 in 476."""
WORST = -1e8
"""No score is worse: CTranslate2 fills up with such where a search finds too few."""


def names_of(vocab: VocabInfo, *, rows: int | None = None) -> list[str]:
    """How an exported vocabulary calls its ids: by the ids, but for the marks that it has.

    ``rows`` is the size of the model's table, if that is not the vocabulary's.
    """
    rows = vocab.size if rows is None else rows
    names = [str(i) for i in range(max(rows, vocab.size))]
    marks = (("<unk>", vocab.unk_idx), ("<s>", vocab.bos_idx), ("</s>", vocab.eos_idx))
    for name, place in marks:
        if place >= 0:
            names[place] = name
    return names[:rows]


def _ids(known: Mapping[str, int], names: Sequence[str]) -> list[int]:
    """The ids of names; a row of the model that no id stands for is called by its number."""
    return [known[name] if name in known else int(name) for name in names]


def _part(rows: int, threads: int) -> int:
    """How many rows are answered together: at most ``ROWS``, and a part for each thread."""
    return max(LEAST_ROWS, min(ROWS, -(-rows // threads)))


def _parts(numbers: list[int], threads: int) -> list[list[int]]:
    size = _part(len(numbers), threads)
    return [numbers[i : i + size] for i in range(0, len(numbers), size)]


class CTranslate2Program:
    """A program of CTranslate2 with the vocabulary of its graph.

    Args:
        kind: ``Generator`` or ``Translator``.
        folder: Where ``model.bin`` is.
        threads: Threads of a processor, each of which searches by itself; 0 is ``OMP_NUM_THREADS``,
            or else as many as the process has cores.
    """

    def __init__(
        self, kind: str, folder: Path, *, vocab: VocabInfo, device: str = "auto", threads: int = 0
    ) -> None:
        import ctranslate2

        self.names = names_of(vocab)
        self.ids = {name: i for i, name in enumerate(self.names)}
        name, _, index = device.partition(":")
        if name not in ("auto", "cpu", "cuda") or (index and not index.isdecimal()):
            raise UserError(f"CTranslate2 runs on cpu or cuda; the device {device} is neither.")
        devices = 0 if name == "cpu" else ctranslate2.get_cuda_device_count()
        if name == "auto":
            name = "cuda" if devices else "cpu"
        if name == "cuda" and devices <= int(index or 0):
            raise UserError(
                f"CTranslate2 finds {devices} CUDA devices, but {device} was asked for. Ask for "
                "one that is there, or for cpu."
            )
        # Threads that share a product wait for each other after each, and a step has dozens of
        # small ones: beside other programs two such threads took 7.0 s of processor time where one
        # took 1.1, and two that search by themselves 1.2 (256 sentences, 256 features, fp32).
        given = os.environ.get("OMP_NUM_THREADS", "")
        cores = int(given) if given.isdecimal() and int(given) else usable_cores()
        self.threads = (threads or cores) if name == "cpu" else 1
        for path in sorted(folder.glob("*.json")):  # CTranslate2 reads them whatever their size
            parse_json(read_all(path, SHORT + 64 * vocab.size, ExportError), path.name, ExportError)
        try:
            self.program: Any = getattr(ctranslate2, kind)(
                str(folder),
                device=name,
                device_index=int(index or 0),
                inter_threads=self.threads,
                intra_threads=1,
            )
        except (RuntimeError, ValueError, LookupError) as error:
            raise ExportError(f"{folder}: CTranslate2 cannot use this graph: {error}") from error


class CTranslate2Texts(CTranslate2Program):
    """Goes on greedily with texts, which begin with ``begin_idx``."""

    def __init__(
        self, folder: Path, search: Search, *, vocab: VocabInfo, begin_idx: int, **where: Any
    ) -> None:
        super().__init__("Generator", folder, vocab=vocab, **where)
        self.search, self.begin_idx, self.eos_idx = search, begin_idx, vocab.eos_idx

    def find(self, begun: Sequence[Sequence[int]], *, by_row: bool) -> list[list[Found]]:
        """Continues texts of one length; an answer ends with its row, or by its length alone.

        Returns:
            For each text the ids of text and continuation, with a score of the whole.
        """
        limit = min(self.search.limit(len(begun[0])), self.search.max_length - len(begun[0]))
        try:
            results = self.program.generate_batch(
                [self._named([self.begin_idx, *ids]) for ids in begun],
                max_batch_size=max(LEAST_ROWS, -(-len(begun) // self.threads)),
                max_length=limit,
                disable_unk=True,
                end_token="</s>" if by_row else "<unk>",  # which is never generated
                include_prompt_in_result=False,
                return_scores=False,
            )
            made = [_ids(self.ids, each.sequences[0]) for each in results]
            whole = [
                [*ids, *more, *[self.eos_idx] * (by_row and len(more) < limit)]
                for ids, more in zip(begun, made, strict=True)
            ]
            scored = self.program.score_batch(
                [self._named([self.begin_idx, *ids]) for ids in whole], max_input_length=0
            )
        except (RuntimeError, ValueError, KeyError) as error:
            raise ExportError(f"CTranslate2 cannot answer with this graph: {error}") from error
        power = self.search.length_penalty
        return [
            [Found([*ids, *more], sum(each.log_probs) / len(all_ids) ** power)]
            for ids, more, all_ids, each in zip(begun, made, whole, scored, strict=True)
        ]

    def read(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of the token after each. *Shape:* ``[B, T]`` to ``[B, T, V]``."""
        found = self.program.forward_batch([self._named(row) for row in ids.tolist()])
        return np.array(found, np.float32)

    def _named(self, ids: Sequence[int]) -> list[str]:
        return [self.names[i] if i < len(self.names) else str(i) for i in ids]


class CTranslate2Graph(CTranslate2Program):
    """Searches targets, which all begin with the ids of ``prefix``."""

    def __init__(
        self, folder: Path, *, vocab: VocabInfo, prefix: Sequence[int], **where: Any
    ) -> None:
        super().__init__("Translator", folder, vocab=vocab, **where)
        self.prefix = list(prefix)

    def find(
        self, sources: Sequence[Sequence[int]], search: Search, forced: Forced = None
    ) -> list[list[Found]]:
        """Hypotheses of each source, the best first.

        Sources of like lengths are searched together, with the limit of the longest. Where a
        shorter one's search did not end within its own limit, it is searched again with that.
        """
        start = len(self.prefix) - 1
        asked = [
            _Asked(
                source=[str(token) for token in ids],
                begun=[self.names[i] for i in (*self.prefix[1:], *begun)],
                limit=search.limit(len(ids), len(begun)),
            )
            for ids, begun in zip(sources, forced or [()] * len(sources), strict=True)
        ]
        try:
            self._score_begun([row for row in asked if len(row.begun) > start])
            order = sorted(range(len(asked)), key=lambda i: asked[i].limit, reverse=True)
            found = self._search(asked, search, _parts(order, self.threads))
            again: dict[int, list[int]] = defaultdict(list)
            for i in order:
                if i not in found:
                    again[asked[i].limit].append(i)
            parts = [part for numbers in again.values() for part in _parts(numbers, self.threads)]
            found.update(self._search(asked, search, parts))
        except (RuntimeError, ValueError, KeyError) as error:
            raise ExportError(f"CTranslate2 cannot answer with this graph: {error}") from error
        return [found[i] for i in range(len(asked))]

    def _score_begun(self, asked: Sequence["_Asked"]) -> None:
        """Scores what targets are made to begin with, to which CTranslate2 gives no score."""
        start = len(self.prefix) - 1
        alike: dict[int, list[_Asked]] = defaultdict(list)
        for row in asked:
            alike[len(row.begun)].append(row)
        for length, rows in alike.items():
            sources, begun = [row.source for row in rows], [row.begun for row in rows]
            # Of like lengths together, for all threads: CTranslate2 sorts them.
            size = _part(len(rows), self.threads)
            scored = self.program.score_batch(
                sources, begun, max_batch_size=size, max_input_length=0
            )
            for row, result in zip(rows, scored, strict=True):
                row.score = sum(result.log_probs[start:length])

    def _search(
        self, asked: Sequence["_Asked"], search: Search, parts: list[list[int]]
    ) -> dict[int, list[Found]]:
        """Hypotheses by the numbers of their sources, if the search ended in time."""
        start = len(self.prefix) - 1
        patience = 1.0 if search.early_stopping == "first" else PATIENCE
        # All that a search ends with: by them it is known whether it ended in time. It counts what
        # a target begins with as generated, so what it found is ranked again.
        count = round(search.beam_size * patience) if search.beam_size > 1 else 1
        found: dict[int, list[Found]] = {}
        searches = [
            self.program.translate_batch(
                [asked[i].source for i in part],
                asynchronous=True,
                target_prefix=[asked[i].begun for i in part],
                beam_size=search.beam_size,
                num_hypotheses=count,
                patience=patience,
                length_penalty=search.length_penalty,
                max_decoding_length=asked[part[0]].limit + start,
                min_decoding_length=0,
                max_input_length=0,
                return_scores=True,
            )
            for part in parts
        ]
        for part, results in zip(parts, searches, strict=True):
            for i, waiting in zip(part, results, strict=True):
                result, row = waiting.result(), asked[i]
                longest = max(map(len, result.hypotheses)) - start
                ended = len(result.hypotheses) == count and longest < row.limit
                if ended or row.limit == asked[part[0]].limit:
                    found[i] = self._found(result, row, search)
        return found

    def _found(self, result: Any, asked: "_Asked", search: Search) -> list[Found]:
        """The best of what was found, with scores of all but the prefix of all targets."""
        power, start, found = search.length_penalty, len(self.prefix) - 1, list[Found]()
        for names, score in zip(result.hypotheses, result.scores, strict=True):
            if score < WORST:
                continue
            ids = _ids(self.ids, names[start:])
            # With the end mark, which is left out at the limit alone.
            length = min(len(ids) + 1, asked.limit)
            total = asked.score + score * (length + start) ** power
            found.append(Found(ids, total / length**power))
        return sorted(found, key=lambda one: -one.score)[: search.n_best]


@dataclass(kw_only=True)
class _Asked:
    """A source to search a target of."""

    source: list[str]
    begun: list[str]
    """What its target begins with, but for the start mark."""
    limit: int
    """Most ids of its target with the end mark, without the prefix of all targets."""
    score: float = 0.0
    """Log-probability of what its target alone begins with."""


class ExportedLanguageModel(ExportedPredictor):
    """Continues texts; an answer ends with its row if ``by_row``, else by its length alone."""

    text: LanguageText

    def __init__(self, text: LanguageText, generator: CTranslate2Texts, *, by_row: bool) -> None:
        super().__init__(text)
        self.generator, self.by_row = generator, by_row

    @override
    def answers(self, rows: Sequence[Row]) -> list[Continued]:
        begun = self._begun(rows)
        found = by_length(
            begun,
            lambda numbers: self.generator.find([begun[i] for i in numbers], by_row=self.by_row),
        )
        hypotheses = [[(one.ids, one.score) for one in each] for each in found]
        return self.text.continued(begun, hypotheses)

    def _begun(self, rows: Sequence[Row]) -> list[list[int]]:
        texts = [row[self.text.column] for row in rows]
        return self.text.begun(
            texts, lines=not self.by_row, longest=self.generator.search.max_length - 1
        )

    @override
    def check(self, row: Row) -> None:
        self._begun([row])


class ExportedSeq2Seq(ExportedPredictor):
    """Answers texts with texts.

    Args:
        answer_prefix: Text that answers begin with, unless the row has a prefix.
        copy_unknown: Whether unknown words of an answer are replaced by those of its source.
    """

    text: Seq2SeqText

    def __init__(
        self,
        text: Seq2SeqText,
        search: Search,
        graph: CTranslate2Graph,
        *,
        answer_prefix: str = "",
        copy_unknown: bool = False,
    ) -> None:
        super().__init__(text)
        self.search, self.graph = search, graph
        self.answer_prefix, self.copy_unknown = answer_prefix, copy_unknown

    @override
    def answers(self, rows: Sequence[Row]) -> list[Translated]:
        if not rows:
            return []
        for row in rows:
            self._refuse(row)
        found = self.graph.find(self.encoded(rows), self.search, self.forced(rows))
        return self.answers_of(found, rows)

    @override
    def with_options(self, options: AnswerOptions) -> RowPredictor:
        if {*options.given} - {"n_best", "beam_size"}:
            return super().with_options(options)
        beam = options.beam_size or max(self.search.beam_size, options.n_best or 1)
        count = options.n_best or min(self.search.n_best, beam)
        if count > beam or beam > LARGEST_BEAM:
            raise UserError(
                f"n_best is {count} and beam_size {beam}: wanted n_best up to beam_size, and that "
                f"up to {LARGEST_BEAM:,}."
            )
        made = copy.copy(self)
        made.search = replace(self.search, beam_size=beam, n_best=count)
        return made

    def answers_of(self, found: Sequence[Sequence[Found]], rows: Sequence[Row]) -> list[Translated]:
        answers = translated(self.text, found)
        return with_copied(answers, rows, self.text) if self.copy_unknown else answers

    def encoded(self, rows: Sequence[Row]) -> list[list[int]]:
        encoded = self.text.encode(rows, with_targets=False)
        if len(encoded.over_length):
            row = int(encoded.over_length[0])
            found = int(encoded["source"].lengths[row])
            raise DataError(
                f"Row {row}, column 'source': has {found} tokens; "
                f"the model takes at most {self.text.limits['source']}."
            )
        return [ids.tolist() for ids in encoded["source"]]

    def forced(self, rows: Sequence[Row]) -> Forced:
        forced = prefix_ids(self.text, [prefix_of(row, self.answer_prefix) for row in rows])
        if forced is not None and (longest := max(map(len, forced))) >= self.search.max_length:
            raise DataError(
                f"A prefix has {longest} tokens; an answer can begin with "
                f"{self.search.max_length - 1} at most."
            )
        return forced

    @override
    def check(self, row: Row) -> None:
        self._refuse(row)
        self.forced([row])
        if len(self.text.encode([row], with_targets=False).over_length):
            raise self._too_long()

    def _refuse(self, row: Row) -> None:
        # A text that is much too long need not be encoded to know it.
        source, limit = source_text(row), self.text.limits.get("source")
        if limit is not None and len(source) > CHARACTERS_A_TOKEN * limit:
            raise self._too_long()

    def _too_long(self) -> DataError:
        limit = self.text.limits.get("source")
        return DataError(f"'source' is longer than the {limit} tokens the model takes.")


def open_export(
    folder: Path, facts: Mapping[str, Any], *, device: str, threads: int
) -> ExportedPredictor:
    """Opens a folder, as :meth:`textmill.exported.formats.ExportFormat.open` says."""
    text, answers = load_text_processor(folder / TEXT), facts["answers"]
    if not isinstance(text, LanguageText | Seq2SeqText):
        raise ExportError(f"a {type(text).__name__} cannot be answered by ctranslate2")
    search, vocab = Search(**facts["search"]), text.tokenizer.vocab_info
    where: dict[str, Any] = {"vocab": vocab, "device": device, "threads": threads}
    if isinstance(text, LanguageText):
        generator = CTranslate2Texts(folder / GRAPH, search, begin_idx=text.begin_idx, **where)
        return ExportedLanguageModel(text, generator, by_row=answers["until"] == "row")
    graph = CTranslate2Graph(folder / GRAPH, prefix=text.target_prefix, **where)
    return ExportedSeq2Seq(text, search, graph, **answers)
