"""Agents on LangGraph whose tool calls cannot break the conversation."""
