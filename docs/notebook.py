"""The notebook of the tutorial, without the part for Spark: `python -m docs.notebook > docs/first_hour.ipynb`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TUTORIAL = Path(__file__).resolve().parent / "tutorial.md"
_BLOCK = re.compile(r"```python\n(.*?)```", re.S)


def notebook(page: str) -> str:
    """The text of the notebook: a cell for each example and for what is between them.

    Args: page: the text of the tutorial.
    """
    page = page.replace(" The same steps are in a [notebook](first_hour.ipynb).", "")
    page = re.sub(r"## 10\. Spark.*?(?=## Where to go)", "", page, flags=re.S)
    page = re.sub(r"  # → .*", "", page)
    texts = _BLOCK.split(page)
    cells = [
        _cell("code" if number % 2 else "markdown", text.strip(), number)
        for number, text in enumerate(texts)
        if text.strip()
    ]
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return {**cell, "source": text.splitlines(keepends=True)}


if __name__ == "__main__":
    print(notebook(TUTORIAL.read_text()), end="")
