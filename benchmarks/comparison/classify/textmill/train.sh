textmill new train.csv
textmill train train.yaml --run-dir model
