"""Changing rows in place: update, delete by a filter, merge.

clauses     the caller's clauses: which rows change, and how
values      new values of columns
stored      the rows of a slice, as stored and as a query shows them
slots       the work of one write task: rows read, changed, written
change      the action
"""
