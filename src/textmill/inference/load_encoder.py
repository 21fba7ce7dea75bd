"""A pretrained encoder as it is, without a run: texts in, vectors out."""

from textmill.errors import UserError
from textmill.inference.load import Predictor
from textmill.models import registries
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.pairs import SentenceEncoder
from textmill.runtime.devices import Env
from textmill.runtime.pretrained import POOLINGS, find_pretrained, longest_text
from textmill.tasks.embedding import LONGEST, TextEmbedding
from textmill.text.tokenizers.pretrained import PretrainedTokenizer


def load_encoder(
    name: str,
    *,
    revision: str | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    device: str = "auto",
) -> Predictor:
    """Loads a pretrained encoder that makes a vector of a text, as sentence-transformers does.

    Its folder says how vectors are pooled, whether they are normalized, and how long texts are;
    where it says nothing, they are normalized means.

    Args:
        name: A folder with config.json, tokenizer.json and model.safetensors, or a name on the
            Hugging Face hub.
        revision: A branch, tag or commit of the hub; None is the newest.
        pooling: How tokens' vectors become one: ``first``, ``max`` or ``mean``; None is
            as the folder says.
        normalize: Whether a vector is divided by its length; None is as the folder says.
        device: ``auto`` or a device as torch names it.

    Raises:
        UserError: There is no such model or pooling, it is no encoder, or its folder says what
            textmill does not do, and not both of ``pooling`` and ``normalize`` are given.
        MissingExtraError: It needs a package of the extra ``huggingface``.
    """
    if not name:
        raise UserError("Name a folder of a pretrained encoder, or one on the Hugging Face hub.")
    if pooling is not None and pooling not in POOLINGS.values():
        known = ", ".join(sorted(POOLINGS.values()))
        raise UserError(f"pooling is {pooling!r:.40}; wanted one of {known}.")
    model = SentenceEncoder.Config(
        encoder=PretrainedEncoder.Config(path=name, revision=revision),
        pooling=None if pooling is None else registries.poolings.get(pooling).Config(),
        normalize=normalize,
    )
    tokenizer = PretrainedTokenizer.Config().build(model=model)
    module = model.build(tokenizer=tokenizer)
    said = longest_text(find_pretrained(name, revision=revision))
    limits = said, module.text.encoder.max_length
    most = min((limit for limit in limits if limit), default=LONGEST)
    config = TextEmbedding.Config(columns=("text", "text2"), max_length=most)
    task = config.build(module=module, tokenizer=tokenizer)
    task.initialize()
    module.to(Env.detect(device).device)
    return Predictor(task)
