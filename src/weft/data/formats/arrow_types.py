"""Which types of Arrow a column can have, and one layout for those that have several."""

from typing import Any

__all__ = ["is_list", "is_readable", "is_text", "plain"]


def is_text(kind: Any) -> bool:
    """Whether a column has texts, or nothing but nulls."""
    import pyarrow

    kinds = pyarrow.types
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_null(kind))


def is_readable(kind: Any) -> bool:
    """Whether its values are texts, numbers, booleans, or lists of these.

    Example:
        >>> import pyarrow as pa
        >>> [is_readable(kind) for kind in (pa.int8(), pa.list_(pa.bool_()), pa.date32())]
        [True, True, False]
        >>> is_readable(pa.list_(pa.list_(pa.string())))
        False
    """
    import pyarrow

    kinds, inner = pyarrow.types, kind.value_type if is_list(kind) else kind
    if kinds.is_dictionary(inner):
        inner = inner.value_type
    return bool(
        is_text(inner)
        or kinds.is_string_view(inner)
        or kinds.is_integer(inner)
        or kinds.is_floating(inner)
        or kinds.is_boolean(inner)
    )


def plain(column: Any) -> Any:
    """A column without dictionary and views; numbers of less than 64 bits as they are written.

    So 0.1 of 32 bits is the 0.1 of a TSV, not 0.10000000149011612.
    """
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        known = _without_views(column.dictionary)
        column = pyarrow.DictionaryArray.from_arrays(column.indices, known).dictionary_decode()
    column = _without_views(column)
    listed = is_list(column.type)
    inner = column.type.value_type if listed else column.type
    text, wide = pyarrow.string(), pyarrow.float64()
    if pyarrow.types.is_float16(inner):  # which no pyarrow writes as text
        single = pyarrow.float32()
        column, inner = column.cast(pyarrow.list_(single) if listed else single), single
    if not pyarrow.types.is_float32(inner):
        return column
    if listed:
        text, wide = pyarrow.list_(text), pyarrow.list_(wide)
    return column.cast(text).cast(wide)


def is_list(kind: Any) -> bool:
    """Whether its values are lists, of one length or not."""
    import pyarrow

    kinds = pyarrow.types
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _without_views(texts: Any) -> Any:
    """Texts laid out as string_view, as Polars writes them, in the layout of all others."""
    import pyarrow

    is_view = pyarrow.types.is_string_view(texts.type)
    return texts.cast(pyarrow.large_string()) if is_view else texts
