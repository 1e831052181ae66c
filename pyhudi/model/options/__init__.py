"""Options: Hudi's keys as text, judged once in `resolve`, typed once in `WriteOptions.parse` and `ReadOptions.parse`.

Below these nobody sees a text key. docs/options.md is printed from the table: `python -m pyhudi.model.options`.
"""

from pyhudi.model.options.keywords import KEYWORDS, merged_options, options_from_keywords
from pyhudi.model.options.locks import LockOptions
from pyhudi.model.options.read import ReadOptions
from pyhudi.model.options.spec import Door, HudiOptionWarning, Kind, OptionSpec, Support
from pyhudi.model.options.table import OPTIONS, option, resolve
from pyhudi.model.options.write import WriteOptions

__all__ = [
    "KEYWORDS",
    "OPTIONS",
    "Door",
    "HudiOptionWarning",
    "Kind",
    "LockOptions",
    "OptionSpec",
    "ReadOptions",
    "Support",
    "WriteOptions",
    "merged_options",
    "option",
    "options_from_keywords",
    "resolve",
]
