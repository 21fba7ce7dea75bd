"""From files to batches: rows with nothing lost, pipelines that resume, batches by token budget."""

from weft.data.bad_rows import BadRow as BadRow
from weft.data.bad_rows import BadRowsError as BadRowsError
from weft.data.bad_rows import RowCount as RowCount
from weft.data.bad_rows import write_bad_rows as write_bad_rows
from weft.data.readers import read_rows as read_rows
from weft.data.readers import read_table as read_table
from weft.data.readers import text_format as text_format
from weft.data.readers import tsv_format as tsv_format
from weft.data.text_pairs import Rows as Rows
from weft.data.text_pairs import TextPairs as TextPairs
