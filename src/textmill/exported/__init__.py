"""Exported models: read, verified and answering, without torch.

``textmill export RUN --format ctranslate2`` writes what :func:`load` reads.
"""

from textmill.exported.formats import load as load
