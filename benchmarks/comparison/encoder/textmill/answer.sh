textmill predict model new.csv --output answers.csv
