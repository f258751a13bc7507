from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.judges.gate import Gate
from culture_tasks.judges.pacing import Breaker, Pace


def round_trip(pace: Pace, now: float, *, overload: bool = False, pause: float = 0.0) -> None:
    pace.start()
    pace.end(now, now, overload=overload, pause=pause)


def test_starts_at_the_ceiling_and_halves_on_overload():
    pace = Pace(64)
    assert pace.limit == 64
    round_trip(pace, 1.0, overload=True)
    assert pace.limit == 32


def test_one_burst_counts_once():
    pace = Pace(64)
    for _ in range(64):
        pace.start()
    for number in range(64):
        pace.end(1.0, 2.0 + number / 1000, overload=True)
    assert pace.limit == 32
    assert pace.in_flight == 0


def test_never_less_than_one_never_more_than_the_ceiling():
    pace = Pace(8)
    for now in range(100):
        round_trip(pace, float(now), overload=True)
    assert pace.limit == 1
    assert pace.free(100.0)
    for now in range(10_000):
        round_trip(pace, float(now))
    assert pace.limit == 8


def test_recovers_in_about_32_rounds():
    # Each round of `limit` good replies adds ceiling/32 = 32, so from 1 it takes about 32 rounds to 1,024.
    pace = Pace(1024)
    pace.limit = 1.0
    rounds = 0
    while pace.limit < 1024:
        for _ in range(int(pace.limit)):
            round_trip(pace, 1.0)
        rounds += 1
    assert 20 <= rounds <= 40


def test_a_pause_holds_everything():
    pace = Pace(4)
    round_trip(pace, 10.0, overload=True, pause=5.0)
    assert not pace.free(14.9)
    assert pace.free(15.0)
    round_trip(pace, 16.0, pause=1.0)
    assert pace.resumes_at == 17.0


@given(st.integers(1, 500), st.lists(st.booleans(), max_size=300))
def test_the_limit_stays_in_its_bounds(ceiling, history):
    pace = Pace(ceiling)
    for now, overload in enumerate(history):
        round_trip(pace, float(now), overload=overload)
        assert 1 <= pace.limit <= ceiling
        assert pace.in_flight == 0


def test_a_silent_endpoint_is_probed_now_and_then():
    breaker = Breaker(patience=60, probe_every=30)
    breaker.failed(0)
    assert not breaker.refuses(59)
    assert not breaker.refuses(60)  # the first probe
    breaker.failed(61)
    assert breaker.refuses(61)
    assert breaker.refuses(89)
    assert not breaker.refuses(90)
    breaker.succeeded()
    assert not breaker.refuses(91)


def test_the_gate_lets_in_by_order_and_by_limit():
    async def scenario() -> list[int]:
        gate, entered = Gate(Pace(2)), []

        async def visit(number: int) -> None:
            began = await gate.enter()
            entered.append(number)
            assert gate.pace.in_flight <= 2
            await asyncio.sleep(0)
            gate.leave(began)

        await asyncio.gather(*(visit(number) for number in range(20)))
        assert gate.pace.in_flight == 0
        return entered

    assert asyncio.run(scenario()) == list(range(20))


def test_somebody_who_gives_up_at_the_gate_frees_the_place():
    async def scenario() -> None:
        gate = Gate(Pace(1))
        began = await gate.enter()
        waiting = [asyncio.create_task(gate.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        gate.leave(began)
        waiting[1].cancel()
        await asyncio.gather(*waiting[:2], return_exceptions=True)
        assert isinstance(await waiting[2], float)
        assert gate.pace.in_flight == 1

    asyncio.run(scenario())


def test_the_gate_opens_after_a_pause():
    async def scenario() -> float:
        gate = Gate(Pace(1))
        gate.leave(await gate.enter(), pause=0.05)
        before = asyncio.get_running_loop().time()
        return await gate.enter() - before

    assert asyncio.run(scenario()) >= 0.04
