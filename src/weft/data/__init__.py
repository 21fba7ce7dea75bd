"""From files to batches: rows with nothing lost, pipelines that resume, batches by token budget."""

from typing import TYPE_CHECKING

from weft.config.public_names import on_first_use

if TYPE_CHECKING:
    from weft.data.bad_rows import BadRow as BadRow
    from weft.data.bad_rows import BadRowsError as BadRowsError
    from weft.data.bad_rows import RowCount as RowCount
    from weft.data.bad_rows import write_bad_rows as write_bad_rows
    from weft.data.batches import EpochBatches as EpochBatches
    from weft.data.batching import BatchedRows as BatchedRows
    from weft.data.batching import Batching as Batching
    from weft.data.formats.columnar import arrow_format as arrow_format
    from weft.data.formats.columnar import parquet_format as parquet_format
    from weft.data.formats.comma_separated import csv_format as csv_format
    from weft.data.formats.conll import conll_format as conll_format
    from weft.data.formats.json_lines import json_lines_format as json_lines_format
    from weft.data.formats.squad import squad_format as squad_format
    from weft.data.huggingface import HuggingFacePairs as HuggingFacePairs
    from weft.data.pipeline import DataPipeline as DataPipeline
    from weft.data.pipeline import PipelineBuilder as PipelineBuilder
    from weft.data.pipeline import concat_pipelines as concat_pipelines
    from weft.data.pipeline import from_sequence as from_sequence
    from weft.data.pipeline import read_arrow as read_arrow
    from weft.data.pipeline import read_conll as read_conll
    from weft.data.pipeline import read_csv as read_csv
    from weft.data.pipeline import read_jsonl as read_jsonl
    from weft.data.pipeline import read_parquet as read_parquet
    from weft.data.pipeline import read_text as read_text
    from weft.data.pipeline import read_tsv as read_tsv
    from weft.data.pipeline import round_robin_pipelines as round_robin_pipelines
    from weft.data.pipeline import sample_pipelines as sample_pipelines
    from weft.data.pipeline import zip_pipelines as zip_pipelines
    from weft.data.readers import read_rows as read_rows
    from weft.data.readers import read_table as read_table
    from weft.data.readers import text_format as text_format
    from weft.data.readers import tsv_format as tsv_format
    from weft.data.rows import Rows as Rows
    from weft.data.seq2seq_batch import Seq2SeqBatch as Seq2SeqBatch
    from weft.data.text_pairs import TextPairs as TextPairs
    from weft.data.text_rows import TextRows as TextRows

__getattr__, __dir__ = on_first_use(__name__)
