python answer.py
