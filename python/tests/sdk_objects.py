"""Messages as the official clients return them: objects for what a model said, dictionaries for the rest."""

import anthropic.types
import openai.types.chat
from pydantic import TypeAdapter

_BLOCK = TypeAdapter(anthropic.types.ContentBlock)


def as_openai(messages):
    """Replaces assistant messages by the objects of the openai client."""
    return [_openai(message) for message in messages]


def as_anthropic(messages):
    """Replaces what a model said by the blocks of the anthropic client."""
    return [_anthropic(message) for message in messages]


def _openai(message):
    if message["role"] != "assistant":
        return message
    return openai.types.chat.ChatCompletionMessage.model_validate(message)


def _anthropic(message):
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return message
    return {"role": "assistant", "content": [_block(block) for block in message["content"]]}


def _block(block):
    try:
        return _BLOCK.validate_python(block)
    except ValueError:
        # Recorded sessions may lack what the API always sends, such as a signature.
        return block
