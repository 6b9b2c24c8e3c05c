"""Three runs at once on one thread (case B74): one goes on, the others are refused soon, nothing is lost."""

import threading
import time
import uuid
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from agentkit import Memory, create_agent, tool
from agentkit.errors import ThreadBusyError
from agentkit.testing import ScriptedModel, StrictModel, assert_valid


def test_runs_that_come_too_late_are_refused_within_seconds(memory: Memory) -> None:
    checkpointer: BaseCheckpointSaver[Any] = memory.checkpointer
    together = threading.Barrier(3, timeout=30)

    @tool
    def work(n: int) -> str:
        """Work."""
        return str(n)

    def answer(history: Any) -> AIMessage:
        if history[-1].type != "human":
            return AIMessage("done")
        together.wait()
        return AIMessage(
            "", tool_calls=[{"name": "work", "args": {"n": 1}, "id": uuid.uuid4().hex, "type": "tool_call"}]
        )

    agent = create_agent(StrictModel(ScriptedModel(answer)), [work], checkpointer=checkpointer)
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex}}
    ended: list[Any] = []

    def run(n: int) -> None:
        try:
            ended.append(agent.invoke({"messages": [("user", f"message {n}")]}, config)["messages"][-1].content)
        except Exception as error:
            ended.append(error)

    begun = time.monotonic()
    threads = [threading.Thread(target=run, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    refused = [end for end in ended if isinstance(end, Exception)]
    assert len(ended) == 3
    assert all(isinstance(error, ThreadBusyError) for error in refused), ended
    assert time.monotonic() - begun < 25  # not the half minute that a checkpoint may take to appear
    assert len(refused) == 2
    messages = agent.get_state(config).values["messages"]
    kinds = [message.type for message in messages]
    # a run that began after another one's message was stored goes on from there, so there may be more than one
    assert [kind for kind in kinds if kind != "human"] == ["ai", "tool", "ai"]
    assert kinds[: kinds.index("ai")] == ["human"] * kinds.count("human")
    assert_valid(messages)
