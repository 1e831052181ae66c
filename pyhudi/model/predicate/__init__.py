"""Predicates: the tree, its SQL and tuple spellings, and tests by ranges of values."""

from pyhudi.model.predicate.ranges import ValueRange, may_match
from pyhudi.model.predicate.sql import parse_call, parse_where
from pyhudi.model.predicate.tree import (
    And,
    Call,
    Column,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    calls_of,
    columns_of,
    conjunction,
    is_opaque,
    without_not,
)
from pyhudi.model.predicate.where_text import to_sql

__all__ = [
    "And",
    "Call",
    "Column",
    "Compare",
    "CompareColumns",
    "Constant",
    "In",
    "IsNull",
    "Like",
    "Not",
    "Opaque",
    "Operand",
    "Or",
    "Predicate",
    "ValueRange",
    "calls_of",
    "columns_of",
    "conjunction",
    "is_opaque",
    "may_match",
    "parse_call",
    "parse_where",
    "to_sql",
    "without_not",
]
