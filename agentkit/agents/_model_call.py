"""The model node: repair the history, run the wrappers, offer tools, call the model, record what it asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command

from agentkit.agents._binding import Binder, Bound
from agentkit.agents._limits import Limits, out_of_steps, unusable_too_often
from agentkit.agents._prompt import prompt
from agentkit.agents._retries import RETRY_MARK, attempts
from agentkit.agents._routes import Routes
from agentkit.agents._state import PRIVATE_KEYS, STEPS_KEY
from agentkit.agents._structured import Strategies, again, missing, refuses
from agentkit.agents._toolsets import Offer, offer_story
from agentkit.agents._wrappers import Answered, ModelChain
from agentkit.errors import StructuredOutputError
from agentkit.messages import ensure_call_ids, error_result, history, open_calls, repair_history, unreadable_result
from agentkit.messages._results import missing_result
from agentkit.tools import OFFERED_KEY, HeadlessTool
from agentkit.tools._headless import unanswered_result
from agentkit.tools._langgraph import runtime_of
from agentkit.tools._recovered import Open, recover
from agentkit.tools._sources import Sources
from agentkit.tools._steps import Story, adrive, drive

__all__ = ["ModelNode", "Setup"]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all model calls of one agent share, decided when it was built."""

    model: Any
    offer: Offer
    """The tools that every model call may offer, and all their names."""
    sources: Sources | None
    """The toolsets, asked for more at each model call; None without any."""
    system_message: SystemMessage | None
    name: str | None
    strategies: Strategies
    binder: Binder
    chain: ModelChain
    routes: Routes
    limits: Limits
    round_steps: int
    """Graph steps from a model call to the end of the next: what must be left of the recursion limit to go on."""
    after_hooks: bool
    """Whether after_model hooks stand between the model and its routes."""
    request_class: type[Any]
    response_class: type[Any]


class ModelNode(Runnable[dict[str, Any], Any]):
    """The node named "model"."""

    name = "model"

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_kwargs: Any) -> Any:  # noqa: A002 - langchain-core's signature
        """Make one model call."""
        if self._setup.routes.finished(input, "model"):
            return Command()
        call = _Call(self._setup, input, config or {})
        if call.unanswered:
            drive(call.recovering())
        if self._setup.sources is not None:
            call.offer = drive(call.asking(self._setup.sources))
        try:
            if self._setup.chain:
                answered = self._setup.chain.call(call.request(), call.ask)
            else:
                answered = Answered(call.ask(call.request()))
        except StructuredOutputError as error:
            answered = call.retry_or_raise(error)
        return call.finish(answered)

    async def ainvoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_kwargs: Any) -> Any:  # noqa: A002 - langchain-core's signature
        """Make one model call, awaiting it."""
        if self._setup.routes.finished(input, "model"):
            return Command()
        call = _Call(self._setup, input, config or {})
        if call.unanswered:
            await adrive(call.recovering())
        if self._setup.sources is not None:
            call.offer = await adrive(call.asking(self._setup.sources))
        try:
            if self._setup.chain:
                answered = await self._setup.chain.acall(call.request(), call.aask)
            else:
                answered = Answered(await call.aask(call.request()))
        except StructuredOutputError as error:
            answered = call.retry_or_raise(error)
        return call.finish(answered)


class _Call:
    """One run of the model node, which may call the model several times or not at all, as wrappers decide."""

    def __init__(self, setup: Setup, state: dict[str, Any], config: RunnableConfig) -> None:
        self.setup = setup
        self.config = config
        self.runtime = runtime_of(config)
        self.steps_left: int = state.pop(STEPS_KEY, 0)
        for key in PRIVATE_KEYS:
            state.pop(key, None)
        self.state = state
        self.stored: list[Any] = state["messages"]
        self.unanswered: list[Open] = []
        self.messages, faults = repair_history(self.stored, self._unanswered)
        self.repairs = changes(self.stored, self.messages) if faults else []
        self.repaired = self.messages
        self.recovered: Sequence[Command[Any]] = ()
        self.offer = setup.offer
        self.bound: Bound | None = None
        self.offered: dict[str, frozenset[str]] = {}
        self.refused: StructuredOutputError | None = None

    def _unanswered(self, message: AIMessage, call: ToolCall) -> ToolMessage:
        self.unanswered.append((message, call))
        return self._missing(message, call)

    def _missing(self, message: AIMessage, call: ToolCall) -> ToolMessage:
        """The result of a call of which nothing is recorded; what a client was to run did not run here."""
        if any(isinstance(tool, HeadlessTool) and tool.name == call["name"] for tool in self.setup.offer.tools):
            return unanswered_result(message, call)
        return missing_result(message, call)

    def recovering(self) -> Story[None]:
        """Answer calls that were left open with what the ledger knows of them, and keep their state updates."""
        found = yield from recover(self.config, self.unanswered)
        if not found.results:
            return

        def answer(message: AIMessage, call: ToolCall) -> ToolMessage:
            return found.results.get((message.id or "", call["id"] or "")) or self._missing(message, call)

        self.messages, _ = repair_history(self.stored, answer)
        self.repairs = changes(self.stored, self.messages)
        self.recovered = found.updates

    def asking(self, sources: Sources) -> Story[Offer]:
        """Ask the toolsets what they add to this call's tools."""
        return offer_story(self.setup.offer, sources, self.state, self.runtime, self.config)

    def request(self) -> Any:
        """What the outermost wrapper sees."""
        setup = self.setup
        # A wrapper may change the list itself, as it could in LangChain: what it was tells whether it did.
        self.repaired = self.messages[:] if setup.chain else self.messages
        return setup.request_class(
            model=setup.model,
            tools=self.offer.tools,
            system_message=setup.system_message,
            response_format=setup.strategies.initial,
            messages=self.messages,
            tool_choice=None,
            state=self.state,
            runtime=self.runtime,
        )

    def ask(self, request: Any) -> Any:
        """Call the model: the innermost handler."""
        bound = self.bound = self.setup.binder.bind(request, self.offer.names)
        return self._read(bound.model.invoke(prompt(request, self.repaired)))

    async def aask(self, request: Any) -> Any:
        """`ask`, awaiting the model."""
        bound = self.bound = self.setup.binder.bind(request, self.offer.names)
        return self._read(await bound.model.ainvoke(prompt(request, self.repaired)))

    def _read(self, output: AIMessage) -> Any:
        assert self.bound is not None  # noqa: S101 - set by ask, just before
        if self.setup.name:
            output.name = self.setup.name
        if any(message.id == output.id for message in self.stored):
            # Some servers count their message ids anew: an answer must not replace an earlier one in the thread.
            output = output.model_copy(update={"id": None})
        message = _named(output)
        if message.tool_calls:
            self.offered[message.id or ""] = self.bound.offered
        reading = self.setup.strategies.read(message, self.bound.strategy)
        self.refused = reading.refused
        return self.setup.response_class(result=reading.messages, structured_response=reading.answer)

    def retry_or_raise(self, error: StructuredOutputError) -> Answered:
        """An answer in text that does not fit: tell the model, unless it was told often enough."""
        message = getattr(error, "ai_message", None)
        strategy = self.bound.strategy if self.bound is not None else None
        if strategy is None or strategy.provider is None or message is None or refuses(message) or self._told_enough():
            raise error
        return Answered(self.setup.response_class(result=[message, again(strategy, error)]))

    def _told_enough(self) -> bool:
        return attempts(self.messages) >= self.setup.limits.retries

    def finish(self, answered: Answered) -> Any:
        """The node's output: the new messages, what was offered for their calls, and where the run goes next."""
        response = answered.response
        structured = response.structured_response
        new = [_named(m) if isinstance(m, AIMessage) else m for m in response.result]
        new = self._closed(new)
        if structured is None and self.setup.strategies.initial is not None:
            new = self._wanting_answer(new)
        if self.steps_left and self.steps_left < self.setup.round_steps:
            new = out_of_steps(self.messages, new)
        update: dict[str, Any] = {"messages": [*self.repairs, *new]}
        if structured is not None or self.setup.strategies.initial is not None:
            update["structured_response"] = structured
        if records := self._records(new):
            update[OFFERED_KEY] = records
        goto = () if self.setup.after_hooks else self._next(new, answered, structured)
        first = Command(update=update, goto=goto)
        return [*self.recovered, first, *answered.commands] if self.recovered or answered.commands else first

    def _closed(self, new: list[BaseMessage]) -> list[BaseMessage]:
        """`new` with an error result for each call that cannot run: unreadable ones, and all if there are no tools."""
        last = next((m for m in reversed(new) if isinstance(m, AIMessage)), None)
        if last is None or not (last.invalid_tool_calls or (last.tool_calls and self.setup.routes.tools is None)):
            return new
        closing = _answer_what_cannot_run(new, last, no_tools=self.setup.routes.tools is None)
        if not closing:
            return new
        if open_calls([*new, *closing]):
            return [*new, *closing]
        for message in closing:
            message.response_metadata[RETRY_MARK] = "unusable_call"
        return unusable_too_often(self.messages, [*new, *closing], self.setup.limits.retries)

    def _wanting_answer(self, new: list[BaseMessage]) -> list[BaseMessage]:
        """Where a structured answer is wanted and `new` neither gives it nor calls tools: ask again, or give up."""
        if self.refused is not None and any(isinstance(m, ToolMessage) for m in new):
            if self._told_enough():
                raise self.refused
            return new
        last = new[-1] if new else None
        strategy = self.bound.strategy if self.bound is not None else None
        if strategy is None or not isinstance(last, AIMessage) or last.tool_calls or last.invalid_tool_calls:
            return new
        error = missing(last, strategy)
        if self._told_enough():
            raise error
        return [*new, again(strategy, error)]

    def _records(self, new: list[BaseMessage]) -> dict[str, frozenset[str]]:
        """What was offered for the calls in `new`. A wrapper's own message gets what the model was offered last."""
        fallback = self.bound.offered if self.bound is not None else self.offer.names
        return {
            m.id or "": self.offered.get(m.id or "", fallback) for m in new if isinstance(m, AIMessage) and m.tool_calls
        }

    def _next(self, new: list[BaseMessage], answered: Answered, structured: Any) -> Any:
        writes: list[Any] = [new]
        for command in answered.commands:
            update = command.update
            if isinstance(update, Mapping) and "messages" in update:
                writes.append(update["messages"])
        messages = new if len(writes) == 1 else history(self.messages, writes)
        return self.setup.routes.after_model(messages, structured)


def _named(message: AIMessage) -> AIMessage:
    """`message` with an id of its own, and one for each of its calls."""
    if not message.id:
        message = message.model_copy(update={"id": str(uuid4())})
    return ensure_call_ids(message)


def changes(stored: list[Any], repaired: list[Any]) -> list[BaseMessage]:
    """What to write so that the reducer turns `stored` into `repaired`: messages that go, and those that are new."""
    before = {id(message) for message in stored}
    kept_ids = {message.id for message in repaired}
    gone: list[BaseMessage] = [RemoveMessage(id=m.id) for m in stored if m.id is not None and m.id not in kept_ids]
    return gone + [message for message in repaired if id(message) not in before]


def _answer_what_cannot_run(new: list[BaseMessage], last: AIMessage, *, no_tools: bool) -> list[ToolMessage]:
    """Error results for the unreadable calls of `last`, and where the agent has no tools for its open calls too."""
    answered = {m.tool_call_id for m in new if isinstance(m, ToolMessage)}
    unreadable = [call for call in last.invalid_tool_calls if call.get("id") not in answered]
    closing = [unreadable_result(call, message_id=last.id) for call in unreadable]
    if no_tools:
        text = "Error: {} is not a valid tool, this agent has none."
        closing += [error_result(call, text.format(call["name"]), message_id=last.id) for call in open_calls(new)]
    return closing
