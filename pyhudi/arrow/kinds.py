"""Kinds of Arrow types, whatever their physical form (plain, large, view, fixed size).

Source: Arrow columnar format.
"""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

import pyarrow as pa
import pyarrow.types as pt

__all__ = ["LIST_ARRAYS", "AnyList", "is_bytes", "is_list", "is_text"]

AnyList: TypeAlias = pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType
LIST_ARRAYS = (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray, pa.ListViewArray, pa.LargeListViewArray)


def is_list(data_type: pa.DataType) -> TypeGuard[AnyList]:
    """Lists of every kind; maps are none."""
    return bool(
        pt.is_list(data_type)
        or pt.is_large_list(data_type)
        or pt.is_fixed_size_list(data_type)
        or pt.is_list_view(data_type)
        or pt.is_large_list_view(data_type)
    )


def is_text(data_type: pa.DataType) -> bool:
    """Strings of every kind; dictionaries of strings are none."""
    return bool(pt.is_string(data_type) or pt.is_large_string(data_type) or data_type.equals(pa.string_view()))


def is_bytes(data_type: pa.DataType) -> bool:
    """Binary of every kind, fixed size too."""
    return bool(
        pt.is_binary(data_type)
        or pt.is_large_binary(data_type)
        or pt.is_fixed_size_binary(data_type)
        or data_type.equals(pa.binary_view())
    )
