"""The package ``tokenizers``, with one thread unless the user has said otherwise.

Unset, ``TOKENIZERS_PARALLELISM`` lets the package start threads at the first batch, which take CPU
time that training would use, and makes it print a warning at each fork after that.
"""

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import tokenizers as tokenizers
