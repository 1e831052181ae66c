"""What is not broken, because no result shows it: names, with the reasons.

Only what can't change a row, a file's content, a body of an instant, an error or a message belongs here: how work is
shared out, and how much is held, read or looked up at a time, by one more or less. What is decided wrongly by far (a
condition negated, a statement removed, another operator) is drawn as everywhere.
"""

from __future__ import annotations

import ast

# Arguments and attributes that say how work is shared out, or what is kept of it.
SHARING_OUT = {
    "use_threads": "Arrow makes the same in one thread",
    "right_is_large": "which side of a join Spark sends round",
    "parallelism": "how many tasks there are",
    "maxsize": "how many answers a function remembers",
}

# Reason → numbers of which one more or less shows nowhere, nor whether a comparison with them says `<` or `<=`.
_REASONS = {
    "an estimate of memory": (
        "_ENTRY_BYTES", "_STAT_BYTES", "_FRAME_BYTES", "_COLUMN_BYTES", "_INDEX_ENTRY_BYTES", "_HIT_BYTES",
        "_CHUNK_BYTES", "_FOOTER_COPIES",
    ),
    "memory before rows are written or spilled": (
        "memory_bytes", "waiting_bytes", "held_bytes", "_BUFFER_BYTES", "_SPLIT_BYTES", "_SPLIT_ROWS",
        "DEFAULT_MEMORY_BYTES", "SORT_MEMORY_BYTES",
    ),
    "as much as is read, decoded or looked up at once": (
        "_PAIRS_AT_ONCE", "_KEYS_AT_ONCE", "_ROWS_AT_ONCE", "_READ_ROWS", "_CHUNK_ROWS", "_CHUNK_INSTANTS",
        "_BATCH_ROWS", "_BLOCK_KEYS", "_MATRIX_BYTES", "CHUNK_RECORDS", "SEARCH_WINDOW_BYTES", "GATHER_BYTES",
        "READ_BYTES", "TAIL_BYTES", "_TAIL_BYTES", "_GAP_BYTES", "_TOGETHER_BYTES", "_PAGE_BUFFER_BYTES",
    ),
    "as many files as are open, threads as read them, or files as a task has": (
        "_FILES_AT_ONCE", "_SCAN_THREADS", "_LOGS_HERE_MAX", "_LOGS_OF_TASK", "_OPEN_FILES", "_SHARES",
    ),
    "when threads, or another way to the same, pay": (
        "_FEW", "_FEW_FILES", "_MANY", "_SMALL_BYTES", "_SMALL_ROW_GROUP_BYTES", "_LARGE_ROW_GROUP_BYTES",
        "_FILTER_KEYS", "_FILTERED_ENTRIES", "_PAGED_ROWS", "_KEYS_COMPARED_MAX", "_SAMPLE_ROWS",
        "key_bytes_in_tasks_max",
    ),
    "what is kept in memory for the next one": ("CACHE_BYTES", "_KEY_ROWS", "_SCHEMAS_KEPT", "_KEPT_CHARS"),
}  # fmt: skip
ROUND_NUMBERS = {name: reason for reason, names in _REASONS.items() for name in names}


def steers_sharing_out(node: ast.expr) -> bool:
    """Whether it is a number of tasks or threads: `parallelism`, or arithmetic with it."""
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node,)
    return any(name_of(part) in SHARING_OUT for part in parts)


def compares_round_number(node: ast.Compare) -> bool:
    """Whether it asks for more or less than a round number."""
    orders = all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
    return orders and any(name_of(side) in ROUND_NUMBERS for side in (node.left, *node.comparators))


def is_left_out(node: ast.Call, keyword: ast.keyword) -> bool:
    """Whether the argument says how work is shared out, or is an assertion.

    The `strict` of a `zip` is one: that both sides have one length no caller can make untrue.
    """
    return keyword.arg in SHARING_OUT or (name_of(node.func) == "zip" and keyword.arg == "strict")


def name_of(node: ast.expr) -> str:
    """The name of a variable, or of an attribute without what it is of."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
