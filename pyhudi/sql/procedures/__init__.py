"""`CALL`: Hudi's procedures, one file per topic.

    CALL show_commits(table => 'rides', limit => 5)                 in a session's SQL
    pyhudi.call("show_commits", "/lake/rides", limit=5)             from Python

A procedure is a function with a decorator that declares its arguments and its result columns. `registry.py` finds all
procedures, and lists the names that are refused.
"""
