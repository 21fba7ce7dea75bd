"""From files to batches: rows with nothing lost, pipelines that resume, batches by token budget."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.data.bad_rows import BadRow as BadRow
    from textmill.data.bad_rows import BadRowsError as BadRowsError
    from textmill.data.bad_rows import RowCount as RowCount
    from textmill.data.bad_rows import write_bad_rows as write_bad_rows
    from textmill.data.batches import EpochBatches as EpochBatches
    from textmill.data.batching import BatchedRows as BatchedRows
    from textmill.data.batching import Batching as Batching
    from textmill.data.formats.comma_separated import csv_format as csv_format
    from textmill.data.formats.conll import conll_format as conll_format
    from textmill.data.formats.json_lines import arrow_format as arrow_format
    from textmill.data.formats.json_lines import json_lines_format as json_lines_format
    from textmill.data.formats.json_lines import parquet_format as parquet_format
    from textmill.data.formats.squad import squad_format as squad_format
    from textmill.data.pipeline import DataPipeline as DataPipeline
    from textmill.data.pipeline import PipelineBuilder as PipelineBuilder
    from textmill.data.pipeline import concat_pipelines as concat_pipelines
    from textmill.data.pipeline import from_sequence as from_sequence
    from textmill.data.pipeline import read_arrow as read_arrow
    from textmill.data.pipeline import read_conll as read_conll
    from textmill.data.pipeline import read_csv as read_csv
    from textmill.data.pipeline import read_jsonl as read_jsonl
    from textmill.data.pipeline import read_parquet as read_parquet
    from textmill.data.pipeline import read_text as read_text
    from textmill.data.pipeline import read_tsv as read_tsv
    from textmill.data.pipeline import round_robin_pipelines as round_robin_pipelines
    from textmill.data.pipeline import sample_pipelines as sample_pipelines
    from textmill.data.pipeline import zip_pipelines as zip_pipelines
    from textmill.data.readers import read_rows as read_rows
    from textmill.data.readers import read_table as read_table
    from textmill.data.readers import text_format as text_format
    from textmill.data.readers import tsv_format as tsv_format
    from textmill.data.rows import Rows as Rows
    from textmill.data.seq2seq_batch import Seq2SeqBatch as Seq2SeqBatch
    from textmill.data.text_pairs import TextPairs as TextPairs
    from textmill.data.text_rows import TextRows as TextRows

__getattr__, __dir__ = on_first_use(__name__)
