"""Exported models: read, verified and answering, without torch.

``weft export RUN --format ctranslate2`` writes what :func:`load` reads.
"""

from weft.exported.loading import load as load
