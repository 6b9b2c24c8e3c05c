"""Ready-made graphs: what langgraph.json serves and `agentkit chat` talks to; also the examples to start from."""
