"""The commands of pipelines: ``weft parse-references`` and its like."""
