textmill new train.conll
textmill train train.yaml --run-dir model
