"""What is fuzzed: a decoder, inputs that it takes, and ways to damage them that know their structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.mutation import Mutator

__all__ = ["MAX_INPUT_BYTES", "Shape", "Target", "input_of"]

MAX_INPUT_BYTES = 1 << 20  # of one input: room for what grows, and a thousand of them are made in seconds

Shape = Callable[[bytes, "Mutator"], bytes]


@dataclass(frozen=True)
class Target:
    """One decoder with all that readers do with its result.

    `run`: decodes an input and looks at the result; a value and a HudiError are both right. `seeds`: valid inputs, the
    same in every run. `shapes`: damage that keeps the rest of an input valid, in addition to what is done to bytes.
    `words`: pieces that mean something to the decoder.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    shapes: Sequence[Shape] = ()
    words: Sequence[bytes] = ()


def input_of(target: Target, seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """The input of this number: it depends on nothing else, so a finding is made again by seed and number.

    The first inputs are the seeds themselves.
    """
    from fuzz.mutation import Mutator

    if number < len(seeds):
        return seeds[number]
    random = Random(f"{seed}/{target.name}/{number}")
    mutator = Mutator(random, target.words, seeds)
    data = random.choice(seeds)
    if target.shapes and random.random() < 0.6:
        data = random.choice(target.shapes)(data, mutator)
        if random.random() < 0.8:
            return data[:MAX_INPUT_BYTES]
    return mutator.damaged(data)[:MAX_INPUT_BYTES]
