"""A model over HTTP: questions in, typed answers out, within limits; and a page to try it.

``textmill serve`` hands in a predictor, of a run or of an export. The packages of the extra
``serve`` are imported by the modules here, so that what imports none of them needs none.
"""
