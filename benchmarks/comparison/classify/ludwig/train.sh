ludwig train --dataset train.csv --config config.yaml
