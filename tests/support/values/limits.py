"""Work that may take only so much memory and time: it is done in a child process that the system holds to that."""

from __future__ import annotations

import subprocess
import sys

from tests.support.source import ROOT

_CHILD = """
import resource, sys
{imports}
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + {memory_bytes}, resource.RLIM_INFINITY))
used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
resource.setrlimit(resource.RLIMIT_CPU, (int(used + {cpu_s}) + 1, resource.RLIM_INFINITY))
{work}
"""


def output_within(imports: str, work: str, *, memory_mb: int, cpu_s: int) -> str:
    """What the work prints. Raises AssertionError, with what it said, when it dies, fails or takes more."""
    code = _CHILD.format(imports=imports, memory_bytes=memory_mb << 20, cpu_s=cpu_s, work=work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}"
    return done.stdout
