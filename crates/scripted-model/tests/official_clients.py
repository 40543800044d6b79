"""Talks to the scripted model with the official packages and checks what they parsed."""

import json
import sys

import anthropic
import openai

URL = sys.argv[1]
TEXT = "Let me look at both files before I say anything."
REASONING = "Two files, two calls."
CALLS = [("read", {"path": "a.rs"}), ("read", {"path": "b.rs", "lines": [1, 2]})]
QUESTION = "What is in a.rs and b.rs? " + "They are long. " * 40
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}

claude = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
gpt = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


def same(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def anthropic_streams():
    request = dict(
        model="claude",
        max_tokens=1000,
        system="Be brief.",
        messages=[{"role": "user", "content": QUESTION}],
        tools=[{"name": "read", "description": "Reads.", "input_schema": SCHEMA}],
    )
    for turn in range(2):
        pieces, thoughts = [], []
        with claude.messages.stream(**request) as stream:
            for event in stream:
                if event.type == "text":
                    pieces.append(event.text)
                if event.type == "thinking":
                    thoughts.append(event.thinking)
            message = stream.get_final_message()
        assert len(pieces) > 1, pieces
        same("".join(pieces), TEXT)
        same("".join(thoughts), REASONING)
        check_message(message)
        assert message.usage.output_tokens > 10
        assert (message.usage.cache_read_input_tokens > 100) == (turn == 1), message.usage
        assert (message.usage.input_tokens > 100) == (turn == 0), message.usage
    check_message(claude.messages.create(**request))


def check_message(message):
    thinking, text, *calls = message.content
    same((thinking.type, thinking.thinking), ("thinking", REASONING))
    assert thinking.signature
    same((text.type, text.text), ("text", TEXT))
    same([(call.name, call.input) for call in calls], CALLS)
    assert calls[0].id != calls[1].id
    same(message.stop_reason, "tool_use")


def anthropic_errors():
    request = dict(model="claude", max_tokens=10)
    limited = [{"role": "user", "content": "limit me"}]
    try:
        claude.messages.create(messages=limited, **request)
        raise AssertionError("no error")
    except anthropic.RateLimitError as error:
        same(error.response.headers["retry-after"], "3")
        same(error.body["error"]["type"], "rate_limit_error")
    busy = [{"role": "user", "content": "be busy"}]
    try:
        with claude.messages.stream(messages=busy, **request) as stream:
            stream.get_final_message()
        raise AssertionError("no error")
    except anthropic.APIStatusError as error:
        same(error.body["error"]["type"], "overloaded_error")


def responses_stream():
    request = dict(
        model="gpt",
        instructions="Be brief.",
        input=[{"role": "user", "content": QUESTION}],
        include=["reasoning.encrypted_content"],
        tools=[{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}],
    )
    for turn in range(2):
        pieces, thoughts, numbers = [], [], []
        with gpt.responses.stream(**request) as stream:
            for event in stream:
                numbers.append(event.sequence_number)
                if event.type == "response.output_text.delta":
                    pieces.append(event.delta)
                if event.type == "response.reasoning_summary_text.delta":
                    thoughts.append(event.delta)
            response = stream.get_final_response()
        same(numbers, list(range(len(numbers))))
        assert len(pieces) > 1, pieces
        same("".join(pieces), TEXT)
        same("".join(thoughts), REASONING)
        check_response(response)
        cached = response.usage.input_tokens_details.cached_tokens
        assert (cached > 100) == (turn == 1), response.usage
    check_response(gpt.responses.create(**request))


def check_response(response):
    same(response.status, "completed")
    same(response.output_text, TEXT)
    reasoning, _, *calls = response.output
    same(reasoning.summary[0].text, REASONING)
    assert reasoning.encrypted_content
    same([(call.name, json.loads(call.arguments)) for call in calls], CALLS)
    assert calls[0].call_id != calls[1].call_id
    assert response.usage.output_tokens_details.reasoning_tokens > 0


def responses_errors():
    try:
        gpt.responses.create(model="gpt", input="limit me")
        raise AssertionError("no error")
    except openai.RateLimitError as error:
        same(error.response.headers["retry-after"], "3")
        same(error.code, "rate_limit_exceeded")
    events = gpt.responses.create(model="gpt", input="be busy", stream=True)
    try:
        same([event.type for event in events][-1], "response.failed")
    except openai.APIError as error:
        same(error.message, "Overloaded")


def chat_streams():
    request = dict(
        model="gpt",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": QUESTION},
        ],
        tools=[{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
    )
    for turn in range(2):
        pieces, thoughts = [], []
        options = {"include_usage": True}
        with gpt.chat.completions.stream(stream_options=options, **request) as stream:
            for event in stream:
                if event.type == "content.delta":
                    pieces.append(event.delta)
                if event.type == "chunk" and event.chunk.choices:
                    delta = event.chunk.choices[0].delta
                    thoughts.append(getattr(delta, "reasoning_content", None) or "")
            completion = stream.get_final_completion()
        assert len(pieces) > 1, pieces
        same("".join(pieces), TEXT)
        same("".join(thoughts), REASONING)
        choice = completion.choices[0]
        same(choice.finish_reason, "tool_calls")
        same(choice.message.content, TEXT)
        functions = [call.function for call in choice.message.tool_calls]
        same([(f.name, json.loads(f.arguments)) for f in functions], CALLS)
        cached = completion.usage.prompt_tokens_details.cached_tokens
        # The Responses requests before had the same model and the same prompt but for the tools.
        assert (cached > 100) == (turn == 1), completion.usage
    whole = gpt.chat.completions.create(**request)
    same(whole.choices[0].message.content, TEXT)
    same(whole.usage.total_tokens, completion.usage.total_tokens)


def chat_errors():
    limited = [{"role": "user", "content": "limit me"}]
    try:
        gpt.chat.completions.create(model="gpt", messages=limited)
        raise AssertionError("no error")
    except openai.RateLimitError as error:
        same(error.response.headers["retry-after"], "3")
        same(error.code, "rate_limit_exceeded")
    busy = [{"role": "user", "content": "be busy"}]
    try:
        list(gpt.chat.completions.create(model="gpt", messages=busy, stream=True))
        raise AssertionError("no error")
    except openai.APIError as error:
        same(error.message, "Overloaded")


def models():
    same([model.id for model in gpt.models.list()], ["scripted"])
    same([model.id for model in claude.models.list()], ["scripted"])


anthropic_streams()
anthropic_errors()
responses_stream()
responses_errors()
chat_streams()
chat_errors()
models()
print("all checks held")
