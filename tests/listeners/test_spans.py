"""Spans of OpenTelemetry, recorded by its own SDK; without it nothing is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source import ROOT

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

SPANS = """
import sys, pyhudi
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
options = {"hoodie.datasource.write.recordkey.field": "id"}
result = pyhudi.write_hudi(sys.argv[1], [{"id": 1, "v": 1}], options=options)
try:
    pyhudi.write_hudi(sys.argv[1], [{"nothing": 1}], options=options)
except pyhudi.HudiError:
    pass
names = {span.context.span_id: span.name for span in spans.get_finished_spans()}
for span in spans.get_finished_spans():
    parent = names.get(span.parent.span_id) if span.parent else None
    print(span.name, parent, span.status.status_code.name, span.attributes.get("hudi.instant") == result.instant_time)
"""


@pytest.mark.thorough
def test_an_action_has_a_span_and_each_phase_one_in_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPANS, str(tmp_path / "t")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    phases = ("schedule", "request", "prepare", "execute", "sweep", "commit")
    first = [f"hudi.{phase} hudi.upsert UNSET False" for phase in phases]
    assert run.stdout.splitlines()[:7] == [*first, "hudi.upsert None UNSET True"]


def test_a_process_without_it_imports_nothing(tmp_path: Path) -> None:
    code = "import sys, pyhudi; pyhudi.write_hudi(sys.argv[1], [{'id': 1}]); print('opentelemetry' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "t")], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr
