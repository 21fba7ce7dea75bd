"""Pretrained checkpoints: a folder, or a name that the Hugging Face hub gives a folder for."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.errors import MissingExtraError, UserError
from textmill.runtime.files import parse_json, read_all

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
MODULES, POOLING = "modules.json", "1_Pooling/config.json"
LENGTHS, PROMPTS = "sentence_bert_config.json", "config_sentence_transformers.json"
SENTENCE_FILES = (MODULES, POOLING, LENGTHS, PROMPTS)
"""What a sentence encoder says of its pooling, of lengths, and of what is put before a text."""
GENERATION = "generation_config.json"
GENERATES = ("bad_words_ids", "decoder_start_token_id")
"""What of an architecture's settings newer checkpoints have in a file of their own."""
_DECODES = ("ForCausalLM", "LMHeadModel")
"""In the names of classes that go on with texts."""
QUANTIZED = ("quantization_config", "compression_config")
"""Settings of checkpoints whose weights are codes of numbers."""
PIECES = (("source.spm", "target.spm", "vocab.json"), ("sentencepiece.bpe.model", "vocab.json"))
"""The files of tokenizers that have no ``tokenizer.json``: Marian's, and M2M-100's."""
KEPT = (
    CONFIG,
    GENERATION,
    "tokenizer_config.json",
    TOKENIZER,
    *SENTENCE_FILES,
    *dict.fromkeys(itertools.chain(*PIECES)),
)
"""Files that a run keeps of a model, which are read again when it goes on."""
LARGEST_CONFIG = 16 << 20
"""Bytes of a file of settings; that of a model with many thousand labels has one million."""


@dataclass(frozen=True)
class PretrainedFolder:
    """The folder of a pretrained model, as Hugging Face lays it out."""

    path: Path
    """Where its files are."""
    name: str
    """What it was asked for by."""
    commit: str | None = None
    """The hub's commit that it is of; None: it is no model of the hub's."""
    kept: bool = False
    """Whether it is what a run keeps of a model: all but the weights."""

    def config(self) -> dict[str, Any]:
        """The settings in ``config.json``, with those of generation that newer checkpoints moved.

        Refuses code of the model's own and quantized weights.
        """
        found: dict[str, Any] = self._read(CONFIG)
        if "auto_map" in found:
            raise UserError(
                f"{self.path / CONFIG} names code of its own (auto_map), which textmill never "
                "runs. Use a model whose architecture the package transformers has."
            )
        if quantized := next((name for name in QUANTIZED if found.get(name)), None):
            raise UserError(
                f"{self.path / CONFIG} has a {quantized}: its weights are quantized, which "
                "textmill does not read. Save it dequantized, or use the model that it was made of."
            )
        if not isinstance(found.get("model_type"), str):
            raise UserError(
                f"{self.path / CONFIG} has no model_type: it is not the config of a model."
            )
        generation = self._read_or_empty(GENERATION)
        found |= {
            name: generation[name]
            for name in GENERATES
            if found.get(name) is None and name in generation
        }
        return found

    def tokenizer(self) -> Path:
        """The file of the tokenizer; the folder itself if it has SentencePiece models."""
        path = self.path / TOKENIZER
        if not path.is_file():
            if any(all((self.path / name).is_file() for name in names) for names in PIECES):
                return self.path
            if not (self.path / CONFIG).is_file():
                raise UserError(f"{self.name} holds no pretrained model: it has no {CONFIG}.")
            raise UserError(f"{self.name} has no {TOKENIZER}. {self._made_once()}")
        return path

    def check_weights(self) -> None:
        """Refuses a folder without safetensors: pickled weights are not read."""
        if not any((self.path / name).is_file() for name in (WEIGHTS, INDEX)):
            raise UserError(
                f"{self.name} has no {WEIGHTS}, and textmill reads no pickled weights. "
                f"{self._made_once()}"
            )

    def _made_once(self) -> str:
        """How to make, once, a folder with all files that are read."""
        kind = "AutoModel"  # without a head, unless it generates
        settings = self._read(CONFIG)
        if settings.get("is_encoder_decoder"):
            kind = "AutoModelForSeq2SeqLM"
        elif any(name in str(settings.get("architectures")) for name in _DECODES):
            kind = "AutoModelForCausalLM"
        return (
            "Make a folder of it once, by Python, and name that: import transformers as t; "
            f"t.{kind}.from_pretrained({self.name!r}).save_pretrained('FOLDER'); "
            f"t.AutoTokenizer.from_pretrained({self.name!r}).save_pretrained('FOLDER')"
        )

    def _read(self, name: str, kind: type = dict) -> Any:
        """The content of a file of settings; links are followed, for the hub's cache has some."""

        def refuse(why: str) -> UserError:
            return UserError(f"{why}.")

        path = self.path / name
        data = read_all(path, LARGEST_CONFIG, refuse, name=str(path), links=True)
        content = parse_json(data, str(path), refuse)
        if not isinstance(content, kind):
            wanted = "mapping" if kind is dict else "list"
            raise UserError(f"{path} must hold a JSON {wanted}; it has {json.dumps(content):.60}.")
        return content

    def _read_or_empty(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = self._read(name) if (self.path / name).is_file() else {}
        return content


Find = Callable[[str, str | None], PretrainedFolder]


def find_pretrained(name: str, *, revision: str | None = None) -> PretrainedFolder:
    """The folder of a path, or of a name on the Hugging Face hub, which is kept in its cache.

    A run that goes on has its own instead, in all but the weights (:func:`finding`). ``revision``
    is a branch, a tag or a commit of the hub; None is the newest.
    """
    return _find.get()(name, revision)


@contextmanager
def finding(find: Find) -> Iterator[None]:
    """Lets :func:`find_pretrained` find what ``find`` does, while it is open."""
    token = _find.set(find)
    try:
        yield
    finally:
        _find.reset(token)


def look_up(name: str, revision: str | None) -> PretrainedFolder:
    """What :func:`find_pretrained` gives where nothing else is said."""
    path = Path(name).expanduser()
    if path.is_dir():
        if revision is not None:
            raise UserError(f"{name} is a folder, which has no revision {revision}. Leave it out.")
        return PretrainedFolder(path, name)
    if path.exists() or path.is_absolute() or name.startswith(("./", "../", "~")):
        raise UserError(f"There is no folder {name}.")
    found = _of_hub(name, revision)
    return PretrainedFolder(found, name, found.name)  # snapshots/COMMIT


_find: ContextVar[Find] = ContextVar("find", default=look_up)


def _of_hub(name: str, revision: str | None) -> Path:
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        if error.name != "huggingface_hub":
            raise
        what = f"The pretrained model {name}, which is no folder here,"
        raise MissingExtraError("huggingface-hub", extra="huggingface", what=what) from None
    wanted = [*KEPT, "target_vocab.json", WEIGHTS, INDEX, "model-*.safetensors"]
    try:
        found = huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=wanted)
    except Exception as error:
        why = (str(error).strip().splitlines() or ["nothing"])[0].partition(". ")[0].rstrip(".")
        raise UserError(
            f"The pretrained model {name} is no folder here, and the Hugging Face hub does not "
            f"give it: {why[:300]}. Name a folder that holds {CONFIG}, {TOKENIZER} and {WEIGHTS}, "
            "or what the hub has."
        ) from error
    return Path(found)


# -- sentence encoders

POOLINGS = {"cls": "first", "max": "max", "mean": "mean"}
"""What poolings are called in Sentence-BERT's folders, and here."""
_SET_BOTH = (
    "Say yourself how its Transformer's vectors are pooled, and whether they are normalized: "
    "model.pooling.type and model.normalize of a run, --pooling and --normalize (or "
    "--no-normalize) of textmill embed, pooling and normalize of load_encoder"
)


@dataclass(frozen=True)
class SentenceSettings:
    """How a sentence encoder was trained to make one vector of a text."""

    pooling: str
    """The registered name of the pooling."""
    normalize: bool
    """Whether a vector is divided by its length."""


def sentence_settings(folder: PretrainedFolder) -> SentenceSettings | None:
    """Reads ``modules.json`` and what it names; None if a folder has none.

    Refuses what textmill does not do, such as another layer after the pooling.
    """
    if not (folder.path / MODULES).is_file():
        return None
    modules = folder._read(MODULES, list)
    kinds = [str(each.get("type")).rpartition(".")[2] for each in modules if isinstance(each, dict)]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UserError(
            f"{folder.path / MODULES}: wanted a Transformer, a Pooling, and perhaps a Normalize; "
            f"found {', '.join(kinds) or 'none'}. {_SET_BOTH}."
        )
    lower_case = folder._read_or_empty(LENGTHS).get("do_lower_case")
    if lower_case or folder._read_or_empty(PROMPTS).get("default_prompt_name"):
        raise UserError(
            f"{folder.path} needs texts in lower case, or with a prompt before each, which "
            f"textmill does not do. Write them in that way. {_SET_BOTH}."
        )
    settings = folder._read_or_empty(POOLING)
    before = "pooling_mode_"
    modes = settings.get("pooling_mode")
    if modes is None:
        modes = [name for name, on in settings.items() if name.startswith(before) and on is True]
    modes = [modes] if isinstance(modes, str) else modes if isinstance(modes, list) else []
    found = [str(mode).removeprefix(before).removesuffix("_tokens") for mode in modes]
    found = ["cls" if name == "cls_token" else name for name in found]
    if len(found) != 1 or found[0] not in POOLINGS:
        raise UserError(
            f"{folder.path / POOLING}: wanted one of the poolings {', '.join(POOLINGS)}; found "
            f"{', '.join(found) or 'none'}. {_SET_BOTH}."
        )
    return SentenceSettings(POOLINGS[found[0]], "Normalize" in kinds)


def longest_text(folder: PretrainedFolder) -> int | None:
    """The most tokens that a text may have by a folder, marks included; None if it has no limit."""
    limits = (
        folder._read_or_empty(LENGTHS).get("max_seq_length"),
        folder._read_or_empty("tokenizer_config.json").get("model_max_length"),
    )  # a tokenizer without a limit says 10 to the 30th
    return next((n for n in limits if isinstance(n, int) and 0 < n < 1 << 30), None)
