"""Changing rows where they are: update, delete by a filter, merge.

clauses     what happens to which rows, in the caller's words
values      what a column is set to
stored      the rows of a slice, as stored and as a query shows them
slots       the work of one write task: rows read, changed, written
change      the action
"""
