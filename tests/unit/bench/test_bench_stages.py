"""The benchmark's stages are functions that the drain has."""

from __future__ import annotations

from tests.bench.stages import REST, STAGES, staged_functions


def test_every_stage_of_the_benchmark_wraps_a_function_that_is_there():
    """A function that got another name or room fails here and not an hour into a benchmark."""
    functions = staged_functions()
    assert all(callable(getattr(where, name)) for where, name, _, _ in functions)
    assert {stage for _, _, stage, _ in functions} == set(STAGES) - {REST}
