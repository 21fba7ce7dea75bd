textmill new train.csv
sed -i 's/ngrams/pretrained/' train.yaml
textmill train train.yaml model.encoder.path=encoder --run-dir model
