"""The server: HTTP around the two protocols."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol, Self, cast

from langchain_core.messages import AIMessage

from agentkit.testing.provider import _anthropic, _openai
from agentkit.testing.provider._refused import HttpError, Refused

Answer = AIMessage | str | HttpError
Script = Callable[[dict[str, Any]], Answer]


class _Api(Protocol):
    """What each protocol module offers."""

    def check(self, body: dict[str, Any]) -> None: ...
    def refusal(self, refused: Refused) -> dict[str, Any]: ...
    def failure(self, error: HttpError) -> dict[str, Any]: ...
    def whole(self, answer: AIMessage, number: int, body: dict[str, Any]) -> dict[str, Any]: ...
    def events(self, answer: AIMessage, number: int, body: dict[str, Any]) -> Iterator[str]: ...


_APIS: dict[str, _Api] = {_openai.PATH: cast("_Api", _openai), _anthropic.PATH: cast("_Api", _anthropic)}


class StrictProvider:
    """A local HTTP server that speaks OpenAI's chat completions and Anthropic's messages, as strictly as they do.

    Real clients run against it: `ChatOpenAI(base_url=provider.openai_url, api_key="none", model=…)`,
    `ChatAnthropic(base_url=provider.anthropic_url, api_key="none", model=…)`. A request with unpaired, doubled or
    misplaced calls gets the 400 that the provider gives, and takes no answer from the script.

    Use it as a context manager: `with StrictProvider([…]) as provider:`. It listens on a free port of 127.0.0.1.

    Args:
        responses: A sequence of answers, given one after the other, or a function that makes each answer from the
            request's body. An answer is an AIMessage, a string, or an `HttpError`. Streamed where the request asks.
        reuse_ids: Give calls the ids that the script has, also where an earlier answer had them. By default such a call
            gets an id of its own, as providers do.
    """

    def __init__(self, responses: Sequence[Answer] | Script, *, reuse_ids: bool = False) -> None:
        self._responses = responses
        self._reuse_ids = reuse_ids
        self._given: set[str | None] = set()
        self._lock = threading.Lock()
        self._number = 0
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests that were accepted, in order."""
        self.refusals: list[str] = []
        """What was said to those that were refused."""

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's clients."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for Anthropic's clients."""
        if self._server is None:
            raise RuntimeError("the provider runs inside `with StrictProvider(…) as provider:` only")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any] | Iterator[str]]:
        """Status and body (or events) for a request."""
        api = _APIS.get(path)
        if api is None:
            return 404, {"error": {"type": "not_found_error", "message": f"no such path: {path}"}}
        try:
            api.check(body)
        except Refused as refused:
            with self._lock:
                self.refusals.append(refused.message)
            return 400, api.refusal(refused)
        with self._lock:
            self.requests.append(body)
            self._number += 1
            number = self._number
            answer = self._next(number, body)
        if isinstance(answer, HttpError):
            return answer.status, api.failure(answer)
        if body.get("stream"):
            return 200, api.events(answer, number, body)
        return 200, api.whole(answer, number, body)

    def _next(self, number: int, body: dict[str, Any]) -> AIMessage | HttpError:
        if callable(self._responses):
            answer = self._responses(body)
        elif number > len(self._responses):
            return HttpError(status=400, message=f"the script has {len(self._responses)} answers only", kind="script")
        else:
            answer = self._responses[number - 1]
        if isinstance(answer, HttpError):
            return answer
        message = AIMessage(content=answer) if isinstance(answer, str) else answer
        return message if self._reuse_ids else self._with_fresh_ids(message, number)

    def _with_fresh_ids(self, message: AIMessage, number: int) -> AIMessage:
        def fresh(calls: Sequence[Any]) -> list[Any]:
            out = []
            for call in calls:
                call_id = call.get("id")
                if call_id is None or call_id in self._given:
                    call_id = f"call_{number}_{len(self._given)}"
                self._given.add(call_id)
                out.append({**call, "id": call_id})
            return out

        return message.model_copy(
            update={
                "tool_calls": fresh(message.tool_calls),
                "invalid_tool_calls": fresh(message.invalid_tool_calls),
            }
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: StrictProvider) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """One request for one connection: nothing is left open when the server stops."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # the name http.server calls
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = cast("_Server", self.server).owner.answer(self.path.split("?")[0], body)
        self.send_response(status)
        self.send_header("Connection", "close")
        if isinstance(answer, dict):
            data = json.dumps(answer).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        else:
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in answer:
                self.wfile.write(event.encode())
                self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Say nothing: what happened is in `requests` and `refusals`."""
