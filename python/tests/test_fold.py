"""infold.fold: what the clients' messages become, beside the command."""

import json
import pickle
import threading
import unittest
import warnings
from pathlib import Path

import anthropic.types
import openai.types.chat

import command
import infold
from sdk_objects import as_anthropic, as_openai

EXAMPLES = Path(__file__).parents[2] / "examples"


def long_session():
    return command.lines((EXAMPLES / "long-session.jsonl").read_bytes())


def chat(turns, words=40):
    """A conversation in OpenAI's form, with a tool call in each turn."""
    messages = [{"role": "system", "content": "You look after the parts."}]
    for turn in range(turns):
        call = {"id": f"call_{turn}", "type": "function"}
        call["function"] = {"name": "part", "arguments": json.dumps({"number": turn})}
        messages += [
            {"role": "user", "content": f"what of part {turn}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": "worn " * words},
            {"role": "assistant", "content": f"part {turn} is worn"},
        ]
    return messages


class TheViewIsThatOfTheCommand(unittest.TestCase):
    def test_for_messages_of_the_anthropic_client(self):
        messages = long_session()
        objects = as_anthropic(messages)
        blocks = [block for message in objects for block in message["content"]]
        self.assertTrue(any(isinstance(block, anthropic.types.ToolUseBlock) for block in blocks))
        for window in (8_000, "32k"):
            with self.subTest(window):
                view = infold.fold(objects, window=window)
                self.assertEqual(view, command.fold(messages, "--window", window))
                self.assertEqual(view.outcome["outcome"], "condensed")

    def test_for_messages_of_the_openai_client(self):
        messages = chat(200)
        objects = as_openai(messages)
        self.assertIsInstance(objects[2], openai.types.chat.ChatCompletionMessage)
        view = infold.fold(objects, window="4k")
        self.assertLess(len(view), len(messages))
        self.assertEqual(view, command.fold(messages, "--window", "4k"))

    def test_for_each_strategy_and_limit(self):
        messages = chat(120)
        for options, flags in [
            ({"window": "4k", "strategy": "truncate"}, ["--window", "4k", "--strategy", "truncate"]),
            ({"window": 6000, "threshold": 50}, ["--window", "6000", "--threshold", "50"]),
            ({"model": "gpt-4", "max_tokens": 1000}, ["--model", "gpt-4", "--max-tokens", "1000"]),
            ({"window": "1m", "max_bytes": 20_000}, ["--window", "1m", "--max-bytes", "20000"]),
            ({"window": "4k", "summarizer": "command:cat >/dev/null; echo short"}, ["--window", "4k", "--summarizer", "command:cat >/dev/null; echo short"]),
        ]:
            with self.subTest(**options):
                self.assertEqual(infold.fold(messages, **options), command.fold(messages, *flags))

    def test_for_a_request_with_its_system_prompt(self):
        request = {"system": "Be brief.", "messages": [{"role": "user", "content": "hello"}]}
        self.assertEqual(
            infold.fold(request, window=8000),
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
        )


class WhatIsNotFoldedComesBackAsItWas(unittest.TestCase):
    def check(self, *messages):
        self.assertEqual(infold.fold(messages, window=8000), list(messages))

    def test_numbers_of_any_size(self):
        numbers = {"big": 2**80, "negative": -(2**63) - 1, "small": 1e-300, "float": 0.1, "whole": 1.0, "flag": True, "none": None}
        message = {"role": "user", "content": "n", "extra": numbers}
        view = infold.fold([message], window=8000)
        self.assertEqual(view, [message])
        self.assertEqual([type(value) for value in view[0]["extra"].values()], [type(value) for value in numbers.values()])

    def test_text_of_any_kind(self):
        self.check({"role": "user", "content": "ünïcødé 漢字 \U0001f600 \u2028 \x00 \n \" \\"})

    def test_a_lone_surrogate(self):
        self.check({"role": "user", "content": "cut \ud83d off"}, {"role": "assistant", "content": "whole \U0001f600"})
        self.assertEqual(
            infold.fold([{"role": "user", "content": "cut \ud83d off"}], window=8000),
            command.fold([{"role": "user", "content": "cut \ud83d off"}], "--window", 8000),
        )

    def test_messages_that_are_bytes_of_json(self):
        view = infold.fold([b'{"role": "user",\n "content": "hello"}'], window=8000)
        self.assertEqual(view, [{"role": "user", "content": "hello"}])

    def test_other_mappings_and_iterables(self):
        from types import MappingProxyType

        parts = ({"type": "text", "text": text} for text in ("a", "b"))
        view = infold.fold(iter([MappingProxyType({"role": "user", "content": parts})]), window=8000)
        self.assertEqual(view, [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])

    def test_a_reply_is_sent_back_without_what_only_the_server_says(self):
        reply = anthropic.types.Message.model_validate(
            {
                "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
                "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
                "content": [{"type": "text", "text": "hello", "citations": None}],
            }
        )
        view = infold.fold([{"role": "user", "content": "hi"}, reply], window=8000)
        self.assertEqual(view[1], {"role": "assistant", "content": [{"type": "text", "text": "hello", "citations": None}]})
        chosen = openai.types.chat.ChatCompletionMessage(role="assistant", content="hello")
        view = infold.fold([{"role": "user", "content": "hi"}, chosen], window=8000)
        self.assertEqual(view[1], {"role": "assistant", "content": "hello"})

    def test_no_messages(self):
        self.assertEqual(infold.fold([], window=8000), [])

    def test_a_view_is_a_list(self):
        view = infold.fold(chat(50), window="4k")
        self.assertEqual(json.loads(json.dumps(view)), view)
        again = pickle.loads(pickle.dumps(view))
        self.assertEqual((again, again.outcome), (view, view.outcome))


class AnErrorSaysWhatToDo(unittest.TestCase):
    def fails(self, error, text, hint, *args, **options):
        with self.assertRaises(error) as raised:
            infold.fold(*args, **options)
        self.assertIn(text, str(raised.exception))
        self.assertIn(hint, raised.exception.hint or "")
        self.assertIsInstance(raised.exception, infold.Error)

    def test_of_arguments(self):
        hello = [{"role": "user", "content": "hello"}]
        self.fails(infold.UsageError, "no window given", "window=32_000", hello)
        self.fails(infold.UsageError, "window: `many`", "32k", hello, window="many")
        self.fails(infold.UsageError, "no option windw", "window", hello, windw=3)
        self.fails(infold.UsageError, "unknown strategy", "", hello, window=8000, strategy="rooo")
        self.fails(infold.UsageError, "rooms", "", hello, window=8000, format="rooms")
        self.fails(infold.UsageError, "one of the command", "function", hello, window=8000, summarizer="model")
        self.fails(ValueError, "400 is no threshold", "", hello, window=8000, threshold=400)

    def test_of_messages(self):
        self.fails(infold.UsageError, "message 2: no \"content\"", "role", [{"role": "user", "content": "a"}, {"role": "user"}], window=8000)
        self.fails(infold.UsageError, "message 1 cannot be written as JSON: it holds bytes", "", [{"role": "user", "content": b"x"}], window=8000)
        self.fails(infold.UsageError, "message 1 cannot be written as JSON", "", [{"role": "user", "content": float("nan")}], window=8000)
        self.fails(infold.UsageError, "type object", "", [{"role": "user", "content": object()}], window=8000)
        self.fails(infold.UsageError, "message 1 is not JSON", "", [b'{"role":'], window=8000)
        self.fails(infold.UsageError, "not a text", "json.loads", "hello", window=8000)
        self.fails(infold.UsageError, "several conversations", "one at a time", [{"messages": [{"role": "user", "content": "a"}]}] * 2, window=8000)

    def test_of_a_floor_that_is_too_large(self):
        self.fails(infold.TooLargeError, "cannot be folded", "larger window", [{"role": "user", "content": "word " * 9000}], window=2000)


class AFunctionWritesSummaries(unittest.TestCase):
    def test_of_the_transcript(self):
        asked = []

        def summarize(text, tokens):
            asked.append((text, tokens))
            return "Part by part was looked at."

        view = infold.fold(chat(200), window="4k", summarizer=summarize)
        self.assertTrue(asked[0][0].startswith("[user]: what of part 0?") or "[user]: what of part 1?" in asked[0][0])
        self.assertGreater(asked[0][1], 0)
        self.assertTrue(any("Part by part was looked at." in str(message) for message in view))
        self.assertEqual(view.outcome["steps"][-1]["summarizer"], "function:summarize")

    def test_and_the_built_in_one_if_it_fails(self):
        def broken(text, tokens):
            raise RuntimeError("no model today")

        with self.assertWarnsRegex(infold.FoldWarning, "broken.*RuntimeError: no model today"):
            view = infold.fold(chat(200), window="4k", summarizer=broken)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(view, infold.fold(chat(200), window="4k"))
        with self.assertWarnsRegex(infold.FoldWarning, "nothing"):
            infold.fold(chat(200), window="4k", summarizer=lambda text, tokens: nothing)  # noqa: F821

    def test_and_an_interrupt_is_not_swallowed(self):
        def interrupted(text, tokens):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            infold.fold(chat(200), window="4k", summarizer=interrupted)


class OtherThreadsRun(unittest.TestCase):
    def test_while_a_fold_waits(self):
        # The command ends when another thread of this process says so: a fold that kept the lock would never end.
        import os
        import tempfile

        with tempfile.TemporaryDirectory() as directory:
            pipe = Path(directory) / "pipe"
            os.mkfifo(pipe)
            views = []
            folding = threading.Thread(
                target=lambda: views.append(
                    infold.fold(chat(200), window="4k", summarizer=f"command:cat >/dev/null; cat {pipe}", summarizer_timeout=60)
                )
            )
            folding.start()
            pipe.write_text("Part by part was looked at.\n")
            folding.join()
            self.assertIn("Part by part was looked at.", str(views[0]))

    def test_several_folds_at_once(self):
        expected = infold.fold(chat(150), window="4k")
        views = [None] * 8

        def work(at):
            views[at] = infold.fold(chat(150), window="4k")

        threads = [threading.Thread(target=work, args=(at,)) for at in range(len(views))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(views, [expected] * len(views))


if __name__ == "__main__":
    unittest.main()
