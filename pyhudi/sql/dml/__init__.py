"""INSERT, UPDATE, DELETE and MERGE INTO.

target         the table that a statement changes: its columns in the engine's SQL
insert         rows of a query, written by an operation of Hudi's
update         UPDATE and DELETE FROM: one query for the rows that change
merge_clauses  the clauses of MERGE INTO, and the columns of the table that its condition binds
merge          MERGE INTO: one query for the rows that change
changed_rows   the rows of such a query as one commit
"""
