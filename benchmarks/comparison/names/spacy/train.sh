python -m spacy convert train.conll . --converter conll
python split.py
python -m spacy init config config.cfg --pipeline ner
python -m spacy train config.cfg --paths.train part.spacy --paths.dev dev.spacy --output model
