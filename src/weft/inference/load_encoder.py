"""A pretrained encoder as it is, without a run: texts in, vectors out."""

from weft.errors import UserError
from weft.inference.load import Predictor
from weft.models.embedding.sentence_encoder import SentenceEncoder
from weft.models.encoders.pretrained import PretrainedEncoder
from weft.runtime.devices import Env
from weft.runtime.pretrained import find_pretrained
from weft.runtime.sentence_settings import sentence_settings
from weft.tasks.embedding import LONGEST, TextEmbedding
from weft.text.tokenizers.pretrained import PretrainedTokenizer

__all__ = ["load_encoder"]


def load_encoder(name: str, *, revision: str | None = None, device: str = "auto") -> Predictor:
    """Loads a pretrained encoder that makes a vector of a text, as sentence-transformers does.

    Its folder says how vectors are pooled, whether they are normalized, and how long texts are;
    where it says nothing, they are normalized means.

    Args:
        name: A folder with config.json, tokenizer.json and model.safetensors, or a name on the
            Hugging Face hub.
        revision: A branch, tag or commit of the hub; None is the newest.
        device: ``auto`` or a device as torch names it.

    Raises:
        UserError: There is no such model, or it is no encoder.
        MissingExtraError: It needs a package of the extra ``huggingface``.

    Example:
        >>> encoder = load_encoder("sentence-transformers/all-MiniLM-L6-v2")  # doctest: +SKIP
        >>> encoder.embed(["How are you?"]).shape  # doctest: +SKIP
        (1, 384)
    """
    if not name:
        raise UserError("Name a folder of a pretrained encoder, or one on the Hugging Face hub.")
    encoder = PretrainedEncoder.Config(path=name, revision=revision)
    model = SentenceEncoder.Config(encoder=encoder)
    tokenizer = PretrainedTokenizer.Config().build(model=model)
    module = model.build(tokenizer=tokenizer)
    said = sentence_settings(find_pretrained(name, revision=revision))
    limits = (said and said.max_length, module.text.encoder.max_length)
    most = min((limit for limit in limits if limit), default=LONGEST)
    config = TextEmbedding.Config(columns=("text", "text2"), max_length=most)
    task = config.build(module=module, tokenizer=tokenizer)
    task.initialize()
    module.to(Env.detect(device).device)
    return Predictor(task)
