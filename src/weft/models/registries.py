"""Names of models and their parts in files: a module is imported when a name is asked for."""

from weft.config.registry import Registry

models = Registry(
    "model",
    {
        "weft.models.causal_transformer": ["transformer_language_model"],
        "weft.models.classifier": ["classifier", "regressor"],
        "weft.models.embedding.sentence_encoder": ["sentence_encoder"],
        "weft.models.huggingface.pretrained_transformer": ["pretrained_transformer"],
        "weft.models.language_model": ["lstm_language_model"],
        "weft.models.lstm_seq2seq": ["lstm_seq2seq"],
        "weft.models.masked_language_model": ["masked_language_model"],
        "weft.models.ngrams": [
            "ngram_classifier",
            "ngram_pair_classifier",
            "ngram_pair_regressor",
            "ngram_regressor",
        ],
        "weft.models.pairs": ["pair_classifier", "pair_regressor", "ranker"],
        "weft.models.decoders.pretrained": ["pretrained_language_model"],
        "weft.models.decoders.pretrained_seq2seq": ["pretrained_seq2seq"],
        "weft.models.readers.pretrained": ["pretrained_reader"],
        "weft.models.readers.reader": ["drqa_reader", "joined_reader"],
        "weft.models.readers.sentences": ["sentence_scorer"],
        "weft.models.tagger": ["intent_slot_model", "tagger"],
        "weft.models.transformer": ["transformer"],
    },
    plural="models",
)
encoders = Registry(
    "encoder",
    {
        "weft.models.encoders.averaging": ["averaging"],
        "weft.models.encoders.cnn": ["cnn"],
        "weft.models.encoders.lstm": ["lstm"],
        "weft.models.encoders.pretrained": ["pretrained"],
        "weft.models.encoders.self_attention": ["self_attention"],
    },
    plural="encoders",
)
poolings = Registry(
    "pooling",
    {"weft.models.poolings": ["attention", "first", "last", "max", "mean", "pooler"]},
    plural="poolings",
)
losses = Registry(
    "loss",
    {
        "weft.models.embedding.losses": [
            "cosent",
            "cosine_similarity",
            "multiple_negatives_ranking",
        ],
        "weft.models.label_losses": [
            "auto",
            "binary_cross_entropy",
            "cross_entropy",
            "focal",
            "hinge",
            "squared_hinge",
        ],
    },
    plural="losses",
)
attentions = Registry(
    "attention",
    {"weft.models.layers.attention": ["multi_head", "talking_heads"]},
    plural="attentions",
)
feed_forwards = Registry(
    "feed_forward", {"weft.models.layers.feed_forward": ["gated", "mlp"]}, plural="feed_forwards"
)
norms = Registry("norm", {"weft.models.layers.norms": ["layer_norm", "rms_norm"]}, plural="norms")
positions = Registry(
    "positions",
    {"weft.models.layers.positions": ["learned", "rotary", "sinusoidal"]},
    plural="positions",
)
