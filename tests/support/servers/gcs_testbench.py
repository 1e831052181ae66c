"""Starts Google's storage-testbench: `python gcs_testbench.py PORT`, by a Python that has it.

The testbench keeps the conditions of a put (`x-goog-if-generation-match`), but its answers lack headers that Google's
have and clients of the XML interface need. They are added here: the generation that a put made, ETag and Last-Modified,
and the listing, which the testbench knows as JSON only.
"""

from __future__ import annotations

import sys
from typing import Any
from xml.sax.saxutils import escape

import flask
import waitress
from gcs.object import Object
from testbench import rest_server
from werkzeug.http import http_date

_read_put = Object.init_xml


def _init_xml(cls: Any, *arguments: Any) -> Any:
    blob, request = _read_put(*arguments)
    flask.g.put = blob
    return blob, request


def _with_headers(response: flask.Response) -> flask.Response:
    if response.status_code in (200, 206):
        if "put" in flask.g:
            response.headers["x-goog-generation"] = str(flask.g.put.metadata.generation)
        response.headers.setdefault("ETag", f'"{response.headers.get("x-goog-generation")}"')
        response.headers.setdefault("Last-Modified", http_date())
    return response


def _list_as_xml(bucket_name: str) -> flask.Response:
    objects, prefixes = rest_server.db.list_object(flask.request, bucket_name, None)
    found = [
        f"<Contents><Key>{escape(one.name)}</Key><Size>{one.size}</Size>"
        f"<LastModified>{one.update_time.ToJsonString()}</LastModified><ETag>{one.etag}</ETag></Contents>"
        for one in objects
    ]
    found += [f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>" for prefix in prefixes]
    return flask.Response(f"<ListBucketResult>{''.join(found)}</ListBucketResult>", content_type="application/xml")


Object.init_xml = classmethod(_init_xml)
rest_server.root.add_url_rule("/<bucket_name>", "list_as_xml", _list_as_xml)
rest_server.root.after_request(_with_headers)
waitress.serve(rest_server.server, host="127.0.0.1", port=int(sys.argv[1]), threads=16)
