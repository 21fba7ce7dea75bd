"""From files to batches: rows with nothing lost, pipelines that resume, batches by token budget."""

from weft.data.bad_rows import BadRow as BadRow
from weft.data.bad_rows import BadRowsError as BadRowsError
from weft.data.bad_rows import RowCount as RowCount
from weft.data.bad_rows import write_bad_rows as write_bad_rows
from weft.data.batches import EpochBatches as EpochBatches
from weft.data.batching import Batching as Batching
from weft.data.pipeline import DataPipeline as DataPipeline
from weft.data.pipeline import PipelineBuilder as PipelineBuilder
from weft.data.pipeline import concat_pipelines as concat_pipelines
from weft.data.pipeline import from_sequence as from_sequence
from weft.data.pipeline import read_text as read_text
from weft.data.pipeline import round_robin_pipelines as round_robin_pipelines
from weft.data.pipeline import sample_pipelines as sample_pipelines
from weft.data.pipeline import zip_pipelines as zip_pipelines
from weft.data.readers import read_rows as read_rows
from weft.data.readers import read_table as read_table
from weft.data.readers import text_format as text_format
from weft.data.readers import tsv_format as tsv_format
from weft.data.seq2seq import Seq2SeqBatch as Seq2SeqBatch
from weft.data.text_pairs import Rows as Rows
from weft.data.text_pairs import TextPairs as TextPairs
