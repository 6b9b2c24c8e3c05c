"""Reducers for state that parallel calls write."""
