"""The commands of pipelines: ``textmill parse-references`` and its like."""
