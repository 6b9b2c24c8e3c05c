"""Running an agent sync or async with one test."""

import asyncio

import pytest


class Runner:
    """Calls an agent's sync or async methods by the same names."""

    def __init__(self, is_async):
        self.is_async = is_async

    async def invoke(self, agent, given, config=None, **kwargs):
        if self.is_async:
            return await agent.ainvoke(given, config, **kwargs)
        return await asyncio.to_thread(agent.invoke, given, config, **kwargs)

    async def stream(self, agent, given, config=None, **kwargs):
        if self.is_async:
            return [event async for event in agent.astream(given, config, **kwargs)]
        return await asyncio.to_thread(lambda: list(agent.stream(given, config, **kwargs)))

    async def state(self, agent, config):
        return await agent.aget_state(config) if self.is_async else agent.get_state(config)


@pytest.fixture(params=["sync", "async"])
def run(request):
    return Runner(request.param == "async")


@pytest.fixture
def thread():
    return {"configurable": {"thread_id": "t"}}
