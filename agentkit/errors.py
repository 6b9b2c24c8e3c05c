"""The exceptions of agentkit.

    AgentkitError
    ├── DefinitionError (ValueError)      a tool, policy, toolset or agent is defined wrongly; raised when it is built
    ├── PairingError (ValueError)         something returned for a tool call does not answer it exactly once
    ├── NotStorableError (ValueError)     a value cannot be kept by the checkpointer or the store
    ├── ArgumentsError (ValueError)       the model's arguments do not fit the tool
    ├── NotOfferedError                   a call names a tool that the model was not offered
    ├── InjectionError (ValueError, KeyError) a tool asks for something the run does not have
    ├── AnswerError (ValueError)          an answer to an interrupt does not fit what was asked
    ├── HistoryError (ValueError)         a history that a strict provider would refuse
    ├── StateConflictError (ValueError)   parallel calls wrote what only one may write
    ├── StructuredOutputError (ValueError) the model gave no answer of the wanted shape
    ├── LimitError                        a limit on calls, tokens or time is reached
    ├── CallTimeoutError (TimeoutError)   a call took longer than its policy allows
    ├── CallCancelledError                a tool cancelled itself, or tried to end the process
    ├── ThreadBusyError                   another run is writing to the thread
    ├── MissingExtraError (ImportError)   an optional dependency is not installed
    └── DatabaseError                     Postgres cannot be opened or does not do what is needed

Each has a stable `code`, for people who match on it. A message says what is wrong, for which tool and call, and what
to do.
"""

__all__ = [
    "AgentkitError",
    "AnswerError",
    "ArgumentsError",
    "CallCancelledError",
    "CallTimeoutError",
    "DatabaseError",
    "DefinitionError",
    "HistoryError",
    "InjectionError",
    "LimitError",
    "MissingExtraError",
    "NotOfferedError",
    "NotStorableError",
    "PairingError",
    "StateConflictError",
    "StructuredOutputError",
    "ThreadBusyError",
]


class AgentkitError(Exception):
    """Root of all exceptions raised by agentkit itself."""

    code = "agentkit"


class DefinitionError(AgentkitError, ValueError):
    """A tool, policy, toolset or agent is defined wrongly. Raised when it is built, never during a run."""

    code = "definition"


class PairingError(AgentkitError, ValueError):
    """What was returned for a tool call does not answer it exactly once."""

    code = "pairing"


class NotStorableError(AgentkitError, ValueError):
    """A value cannot be kept by the checkpointer or the store; the message names the path within the value."""

    code = "not_storable"


class ArgumentsError(AgentkitError, ValueError):
    """The arguments the model gave do not fit the tool. Becomes an error result."""

    code = "arguments"


class NotOfferedError(AgentkitError):
    """A call names a tool that was not offered to the model when it asked. Becomes an error result."""

    code = "not_offered"


class InjectionError(AgentkitError, ValueError, KeyError):
    """A tool asks for state, context or a store that this run does not have. Raised: the model cannot mend it."""

    code = "injection"
    __str__ = Exception.__str__  # KeyError would quote it


class AnswerError(AgentkitError, ValueError):
    """An answer to an interrupt does not fit what was asked. The interrupt stays open."""

    code = "answer"


class HistoryError(AgentkitError, ValueError):
    """A message history that a strict provider would refuse."""

    code = "history"


class StateConflictError(AgentkitError, ValueError):
    """Parallel calls wrote a state key that only one of them may write."""

    code = "state_conflict"


class StructuredOutputError(AgentkitError, ValueError):
    """The model gave no answer of the wanted shape within the allowed attempts."""

    code = "structured_output"


class LimitError(AgentkitError):
    """A limit on model calls, tool calls, tokens or time is reached."""

    code = "limit"


class CallTimeoutError(AgentkitError, TimeoutError):
    """A call took longer than its policy allows. Becomes an error result."""

    code = "call_timeout"


class CallCancelledError(AgentkitError):
    """A tool cancelled itself, or tried to end the process. Becomes an error result."""

    code = "call_cancelled"


class ThreadBusyError(AgentkitError):
    """Another run is writing to the thread."""

    code = "thread_busy"


class MissingExtraError(AgentkitError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    code = "missing_extra"


class DatabaseError(AgentkitError):
    """Postgres cannot be opened, or does not do what is needed."""

    code = "database"
