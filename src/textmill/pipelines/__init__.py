"""Pipelines for whoever never trains: a string, a text file or a PDF in, typed results out."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.pipelines.dataset_mentions import DatasetMentions as DatasetMentions
    from textmill.pipelines.dataset_mentions import MentionedDatasets as MentionedDatasets
    from textmill.pipelines.find_model import models_home as models_home
    from textmill.pipelines.given_text import GivenText as GivenText
    from textmill.pipelines.given_text import PlacedSpan as PlacedSpan
    from textmill.pipelines.language_identifier import IdentifiedLanguage as IdentifiedLanguage
    from textmill.pipelines.language_identifier import LanguageIdentifier as LanguageIdentifier
    from textmill.pipelines.pipeline import Pipeline as Pipeline
    from textmill.pipelines.pipeline import PipelineResult as PipelineResult
    from textmill.pipelines.reference_parser import ParsedReference as ParsedReference
    from textmill.pipelines.reference_parser import ReferenceParser as ReferenceParser
    from textmill.pipelines.registries import pipelines as pipelines
    from textmill.pipelines.registries import register_pipeline as register_pipeline
    from textmill.pipelines.summarizer import Summarizer as Summarizer
    from textmill.pipelines.summarizer import Summary as Summary

__getattr__, __dir__ = on_first_use(__name__)
