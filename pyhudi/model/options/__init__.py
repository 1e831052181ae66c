"""Options: Hudi's keys as text, checked once in `resolve`, typed once in `WriteOptions.parse` and `ReadOptions.parse`.

No code behind these uses text keys. Each option is declared in one place, usually a field of its topic's class
(`declare.py` explains how); docs/options.md is generated from there: `python -m pyhudi.model.options`.
"""

from pyhudi.model.options.calls import ReadOptions, WriteOptions, streamer_options
from pyhudi.model.options.concurrency import LockOptions
from pyhudi.model.options.known_keys import (
    ARGUMENTS,
    KEYWORDS,
    OPTIONS,
    canonical_keys,
    check_names,
    known_options,
    merged_options,
    options_from_keywords,
    resolve,
    spec_of,
)
from pyhudi.model.options.spec import HudiOptionWarning, Kind, OptionScope, OptionSpec, Support

__all__ = [
    "ARGUMENTS",
    "KEYWORDS",
    "OPTIONS",
    "HudiOptionWarning",
    "Kind",
    "LockOptions",
    "OptionScope",
    "OptionSpec",
    "ReadOptions",
    "Support",
    "WriteOptions",
    "canonical_keys",
    "check_names",
    "known_options",
    "merged_options",
    "options_from_keywords",
    "resolve",
    "spec_of",
    "streamer_options",
]
