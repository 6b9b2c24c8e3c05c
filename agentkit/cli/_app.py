"""The commands and their options; what they do is imported when they are called."""

from typing import Annotated

import typer

from agentkit.cli import _db, _mcp, _memory, _threads

__all__ = ["app", "run"]

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]

app = typer.Typer(
    name="agentkit",
    help="Agents on LangGraph whose tool calls cannot break the conversation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code; failures are raised."""
    code: int | None = app(args=arguments, prog_name="agentkit", standalone_mode=False)
    return code or 0


@app.command()
def chat(
    graph: Annotated[
        str | None,
        typer.Argument(help="A name in langgraph.json, FILE.py, FILE.py:NAME or module:NAME; else the assistant."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="provider:name; else AGENTKIT_MODEL; else the offline rehearsal model, which is no LLM."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(envvar="AGENTKIT_USER", help="Whose memory it is; else the name of the account.")
    ] = None,
    resume: Annotated[str | None, typer.Option(help="A thread to go on with, or 'last'.")] = None,
    debug: Debug = False,
) -> int:
    """Talk to an agent in the terminal. Reads its questions from stdin where that is no terminal."""
    from agentkit.cli._chat import chat as talk

    return talk(graph=graph, model=model, user=user, resume=resume, debug=debug)


@app.command()
def demo(debug: Debug = False) -> int:  # noqa: ARG001  read from the arguments by whoever reports the failure
    """Show, on a real Postgres, what the agents do when things go wrong. Ends with 0 if every step held."""
    from agentkit.cli._demo import demo as show

    return show()


app.add_typer(_db.app, name="db")
app.add_typer(_threads.app, name="threads")
app.add_typer(_memory.app, name="memory")
app.add_typer(_mcp.app, name="mcp")
