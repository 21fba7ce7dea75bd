"""A trained model as a folder that another program runs: written, compared with the original."""
