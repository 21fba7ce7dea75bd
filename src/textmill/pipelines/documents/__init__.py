"""Documents: a PDF or a text file to lines, and from them references, abstract and body."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.pipelines.documents.document import Document as Document
    from textmill.pipelines.documents.document import DocumentError as DocumentError
    from textmill.pipelines.documents.document import Line as Line
    from textmill.pipelines.documents.document import Passage as Passage
    from textmill.pipelines.documents.document import joined_passages as joined_passages
    from textmill.pipelines.documents.pdf import PdfLimits as PdfLimits
    from textmill.pipelines.documents.pdf import read_pdf as read_pdf
    from textmill.pipelines.documents.sections import find_abstract as find_abstract
    from textmill.pipelines.documents.sections import find_body as find_body
    from textmill.pipelines.documents.sections import find_references as find_references

__getattr__, __dir__ = on_first_use(__name__)
