"""Names of models and their parts in files: a module is imported when a name is asked for."""

from textmill.config.registry import Registry

models = Registry(
    "model",
    {
        "textmill.models.causal_transformer": ["transformer_language_model"],
        "textmill.models.classifier": ["classifier", "regressor"],
        "textmill.models.decoders.mask_predict": ["mask_predict"],
        "textmill.models.decoders.pretrained_transformer": ["pretrained_transformer"],
        "textmill.models.language_model": ["lstm_language_model"],
        "textmill.models.lstm_seq2seq": ["lstm_seq2seq"],
        "textmill.models.masked_language_model": ["masked_language_model"],
        "textmill.models.ngrams": [
            "ngram_classifier",
            "ngram_pair_classifier",
            "ngram_pair_regressor",
            "ngram_regressor",
        ],
        "textmill.models.pairs": [
            "pair_classifier",
            "pair_regressor",
            "ranker",
            "sentence_encoder",
        ],
        "textmill.models.decoders.pretrained": ["pretrained_language_model"],
        "textmill.models.decoders.pretrained_seq2seq": ["pretrained_seq2seq"],
        "textmill.models.parsers.rnng": ["rnng"],
        "textmill.models.readers.pretrained": ["pretrained_reader"],
        "textmill.models.readers.reader": ["drqa_reader", "joined_reader"],
        "textmill.models.readers.sentences": ["sentence_scorer"],
        "textmill.models.tagger": ["intent_slot_model", "tagger", "text_tagger"],
        "textmill.models.transformer": ["transformer"],
    },
    plural="models",
)
encoders = Registry(
    "encoder",
    {
        "textmill.models.encoders.sequence": ["averaging", "cnn"],
        "textmill.models.encoders.lstm": ["lstm"],
        "textmill.models.encoders.pretrained": ["pretrained"],
        "textmill.models.encoders.self_attention": ["self_attention"],
    },
    plural="encoders",
)
poolings = Registry(
    "pooling",
    {"textmill.models.poolings": ["attention", "first", "max", "mean", "pooler"]},
    plural="poolings",
)
losses = Registry(
    "loss",
    {
        "textmill.models.embedding_losses": [
            "cosent",
            "cosine_similarity",
            "multiple_negatives_ranking",
        ],
        "textmill.models.label_losses": ["auto", "binary_cross_entropy", "cross_entropy"],
    },
    plural="losses",
)
attentions = Registry(
    "attention",
    {"textmill.models.layers.attention": ["multi_head", "talking_heads"]},
    plural="attentions",
)
