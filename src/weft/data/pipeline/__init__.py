"""Chains of verbs over items, resumable at every item: ``read_text(f).map(g).and_return()``."""

from weft.data.pipeline.builder import PipelineBuilder as PipelineBuilder
from weft.data.pipeline.builder import concat_pipelines as concat_pipelines
from weft.data.pipeline.builder import from_sequence as from_sequence
from weft.data.pipeline.builder import read_text as read_text
from weft.data.pipeline.builder import round_robin_pipelines as round_robin_pipelines
from weft.data.pipeline.builder import sample_pipelines as sample_pipelines
from weft.data.pipeline.builder import zip_pipelines as zip_pipelines
from weft.data.pipeline.collate import collate as collate
from weft.data.pipeline.node import DataPipeline as DataPipeline
from weft.data.pipeline.row_sources import read_arrow as read_arrow
from weft.data.pipeline.row_sources import read_conll as read_conll
from weft.data.pipeline.row_sources import read_csv as read_csv
from weft.data.pipeline.row_sources import read_jsonl as read_jsonl
from weft.data.pipeline.row_sources import read_parquet as read_parquet
from weft.data.pipeline.row_sources import read_tsv as read_tsv
