"""Chains of verbs over items, resumable at every item: ``read_text(f).map(g).and_return()``.

The shipped readers are not built of them: they account for every row of a file before step 1, and
plan an epoch from the lengths of all rows, which a chain that sees one item at a time cannot know.
"""

from textmill.data.pipeline.builder import PipelineBuilder as PipelineBuilder
from textmill.data.pipeline.builder import collate as collate
from textmill.data.pipeline.builder import concat_pipelines as concat_pipelines
from textmill.data.pipeline.builder import round_robin_pipelines as round_robin_pipelines
from textmill.data.pipeline.builder import sample_pipelines as sample_pipelines
from textmill.data.pipeline.builder import zip_pipelines as zip_pipelines
from textmill.data.pipeline.cursors import DataPipeline as DataPipeline
from textmill.data.pipeline.sources import from_sequence as from_sequence
from textmill.data.pipeline.sources import read_arrow as read_arrow
from textmill.data.pipeline.sources import read_conll as read_conll
from textmill.data.pipeline.sources import read_csv as read_csv
from textmill.data.pipeline.sources import read_jsonl as read_jsonl
from textmill.data.pipeline.sources import read_parquet as read_parquet
from textmill.data.pipeline.sources import read_text as read_text
from textmill.data.pipeline.sources import read_tsv as read_tsv
