textmill predict model new.conll > answers.txt
