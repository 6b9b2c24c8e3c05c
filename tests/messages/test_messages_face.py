import langchain.messages
import langchain_core.messages

import agentkit.messages


def test_agentkit_messages_is_langchain_messages_and_the_pairing_law():
    theirs = set(langchain.messages.__all__)
    ours = set(agentkit.messages.__all__) - theirs
    assert theirs <= set(agentkit.messages.__all__)
    assert all(getattr(agentkit.messages, name) is getattr(langchain.messages, name) for name in theirs)
    assert ours == {
        "Fault",
        "FaultKind",
        "REMOVE_ALL_MESSAGES",
        "add_history",
        "check_history",
        "ensure_call_ids",
        "error_result",
        "history",
        "open_calls",
        "owner_of",
        "repair_history",
        "result_id",
        "safe_cut",
        "unique_call_ids",
        "unreadable_calls",
        "unreadable_result",
    }
    assert agentkit.messages.AIMessage is langchain_core.messages.AIMessage


def test_remove_all_is_langgraphs_constant():
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    assert agentkit.messages.REMOVE_ALL_MESSAGES == REMOVE_ALL_MESSAGES
