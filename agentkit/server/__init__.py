"""Factories and an auth example for LangGraph Server."""
