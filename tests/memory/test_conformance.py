"""The official conformance suite for checkpointers, all of it, for both savers."""

from langgraph.checkpoint.conformance import checkpointer_test, validate

from agentkit.memory import aopen_memory, open_memory


async def report_of(name, opened):
    @checkpointer_test(name=name)
    async def saver():
        yield opened.checkpointer

    report = await validate(saver)
    return {
        name: result.failures or ("passed" if result.passed else "not detected")
        for name, result in report.results.items()
    }


EVERYTHING = dict.fromkeys(
    ("put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune"), "passed"
)


async def test_the_async_saver_conforms(postgres_url):
    async with aopen_memory(postgres_url) as memory:
        assert await report_of("agentkit async", memory) == EVERYTHING


async def test_the_sync_saver_conforms(postgres_url):
    with open_memory(postgres_url) as memory:
        assert await report_of("agentkit sync", memory) == EVERYTHING
