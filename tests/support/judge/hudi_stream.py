"""A stream of real Hudi into a table: `hudi_stream.py <judge's folder> <hudi version> <request as JSON>`.

Run by the judge's Python, with its engine. The request: `source`, a folder of JSON files, one for each batch;
`schema`; `table`; `checkpoint`; `options`. The last line of the output: the number of rows of each batch, as JSON.
"""

from __future__ import annotations

import json
import os
import sys


def main(judge: str, version: str, request: dict[str, str]) -> None:
    sys.path.insert(0, judge)
    from engine import Engine  # type: ignore[import-not-found]

    engine = Engine(version)
    try:
        rows = engine.spark.readStream.schema(request["schema"]).option("maxFilesPerTrigger", 1)
        writer = rows.json(request["source"]).writeStream.format("hudi").outputMode("append")
        for key, value in dict(request["options"]).items():
            writer = writer.option(key, value)
        writer = writer.option("checkpointLocation", request["checkpoint"]).trigger(availableNow=True)
        query = writer.start(request["table"])
        query.awaitTermination()
        print(json.dumps([each["numInputRows"] for each in query.recentProgress]), flush=True)
    finally:
        engine.close()


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
