"""From the arguments a model gave to the arguments a body takes: validated, completed with defaults, or refused.

A checker is made once per tool and sees what the model gave, nothing else: injected values are neither validated nor
copied, and a schema that forbids extra fields does not mind them.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from agentkit.tools._pydantic_arguments import PydanticCheck, PydanticV1Check
from agentkit.tools._takes import Takes

logger = logging.getLogger(__name__)

Schema: TypeAlias = type[BaseModel] | type[BaseModelV1] | dict[str, Any]
Arguments: TypeAlias = dict[str, Any]
Checker: TypeAlias = Callable[[Arguments], Arguments]
"""Takes a model's arguments and gives new ones for the body. Raises ArgumentsError; never changes what it was given."""


def checker_of(
    tool: str, schema: Schema | None, hidden: frozenset[str], takes: Takes, needed: frozenset[str] = frozenset()
) -> Checker:
    """The checker for one body.

    Args:
        tool: the tool's name, for error texts.
        schema: what the model's arguments are checked against; None for no check.
        hidden: names of injected parameters; the schema's fields of these names ask nothing of the model.
        takes: what the body can be given.
        needed: parameters of the body without a default of their own, which a JSON schema's `default` can fill.

    Raises:
        DefinitionError: the schema itself is wrong.
    """
    if schema is None:
        return dict
    if isinstance(schema, dict):
        # loaded where the first JSON schema comes: jsonschema takes longer than the rest of this package together
        try:
            from agentkit.tools._json_arguments import JsonCheck
        except ImportError as error:  # an installation without its dependencies: like LangChain, do without the check
            logger.warning("%s is not installed: arguments of tool %r are not checked", error.name, tool)
            return dict
        return JsonCheck(tool, schema, hidden, takes, needed)
    if issubclass(schema, BaseModelV1):
        return PydanticV1Check(tool, schema, hidden, takes)
    return PydanticCheck(tool, schema, hidden, takes)
