"""Pipelines for whoever never trains: a string, a text file or a PDF in, typed results out."""

from typing import TYPE_CHECKING

from weft.config.public_names import on_first_use

if TYPE_CHECKING:
    from weft.pipelines.dataset_mentions import DatasetMentions as DatasetMentions
    from weft.pipelines.dataset_mentions import MentionedDatasets as MentionedDatasets
    from weft.pipelines.find_model import models_home as models_home
    from weft.pipelines.given_text import GivenText as GivenText
    from weft.pipelines.pipeline import Pipeline as Pipeline
    from weft.pipelines.pipeline import PipelineResult as PipelineResult
    from weft.pipelines.placed_spans import PlacedSpan as PlacedSpan
    from weft.pipelines.reference_parser import ParsedReference as ParsedReference
    from weft.pipelines.reference_parser import ReferenceParser as ReferenceParser
    from weft.pipelines.registries import pipelines as pipelines
    from weft.pipelines.registries import register_pipeline as register_pipeline
    from weft.pipelines.summarizer import Summarizer as Summarizer
    from weft.pipelines.summarizer import Summary as Summary

__getattr__, __dir__ = on_first_use(__name__)
