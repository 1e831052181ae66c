"""`CALL`: Hudi's procedures, one file per topic.

    CALL show_commits(table => 'rides', limit => 5)                 in a session's SQL
    pyhudi.call("show_commits", "/lake/rides", limit=5)             from Python

A procedure is a row of its topic's `PROCEDURES`; `registry.py` has all of them, and the names that are refused.
"""
