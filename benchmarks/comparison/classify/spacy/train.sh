python convert.py
python -m spacy init config config.cfg --pipeline textcat
python -m spacy train config.cfg --paths.train train.spacy --paths.dev dev.spacy --output model
