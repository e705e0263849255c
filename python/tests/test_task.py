"""infold.Task: what is kept, and what the command sees of it."""

import datetime
import pathlib
import tempfile
import threading
import unittest

import command
import infold
from test_fold import chat


class TaskTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.contexts = pathlib.Path(self.directory.name) / "contexts"

    def create(self, messages=(), **about):
        task = infold.Task.create(self.contexts, **about)
        if messages:
            task.append(messages)
        return task

    def seen_by_command(self, *args):
        return command.run("--contexts", self.contexts, *args)

    def test_what_is_appended_is_shown_to_the_command_and_back(self):
        messages = chat(3)
        task = self.create()
        self.assertEqual(task.append(messages[0]), range(1, 2))
        self.assertEqual(task.append(messages[1:]), range(2, len(messages) + 1))
        self.assertEqual(task.append([]), range(0))
        self.assertEqual(task.view(), messages)
        seen = command.lines(self.seen_by_command("--json", "view", task.id))
        self.assertEqual([entry["seq"] for entry in seen], list(range(1, len(messages) + 1)))
        again = infold.Task.open(task.id[:8], self.contexts)
        self.assertEqual((again.id, again.view()), (task.id, messages))
        self.assertEqual(infold.Task.open(contexts=self.contexts).id, task.id)
        self.assertEqual([row["uuid"] for row in infold.tasks(self.contexts)], [task.id])
        self.assertEqual(task.info()["messages"], len(messages))

    def test_manage_folds_as_the_command_does_and_undo_opens(self):
        messages = chat(200)
        task = self.create(messages)
        outcome = task.manage(window="4k")
        self.assertEqual(outcome["outcome"], "condensed")
        view = task.view()
        self.assertEqual(view, infold.fold(messages, window="4k"))
        self.assertEqual(task.manage(window="1m")["outcome"], "untouched")
        task.undo()
        self.assertEqual(task.view(), messages)
        task.redo()
        self.assertEqual(task.view(), view)

    def test_a_fold_with_a_text_is_opened_again(self):
        messages = chat(6)
        task = self.create(messages)
        folded = task.fold(range(6, 14), "two parts were worn")
        self.assertEqual((folded["from"], folded["to"]), (6, 13))
        self.assertIn("two parts were worn", str(task.view()))
        self.assertEqual(task.view(at=len(messages))[:5], messages[:5])
        recalled = task.recall(folded["fold"])
        self.assertEqual(recalled[0]["fold"], folded["fold"])
        self.assertEqual([entry["message"] for entry in recalled[1:]], messages[5:13])
        self.assertFalse(recalled[1]["shown"])
        task.unfold(folded["fold"])
        self.assertEqual(task.view(), messages)
        self.assertIs(infold.Task.condense, infold.Task.fold)

    def test_rewind_hides_and_loses_nothing(self):
        messages = chat(4)
        task = self.create(messages)
        task.rewind(to=5)
        self.assertEqual(task.view(), messages[:5])
        self.assertEqual([entry["message"] for entry in task.recall("6..")], messages[5:])
        task.undo()
        task.rewind(before=6)
        self.assertEqual(task.view(), messages[:5])
        task.undo()
        self.assertEqual(task.view(), messages)
        with self.assertRaisesRegex(infold.UsageError, "future"):
            task.rewind(to=datetime.datetime(2999, 1, 1, tzinfo=datetime.timezone.utc))

    def test_what_is_hidden_is_found(self):
        task = self.create(chat(200))
        other = self.create([{"role": "user", "content": "what of part 7?"}])
        task.manage(window="4k")
        hits = task.search("part 7", hidden=True)
        self.assertEqual({hit["task"] for hit in hits}, {task.id})
        self.assertTrue(all(hit["hidden"] for hit in hits))
        found = infold.search("what of part 7?", contexts=self.contexts, exact=True)
        self.assertEqual({hit["task"] for hit in found}, {task.id, other.id})
        self.assertEqual(infold.search("zebra", contexts=self.contexts), [])

    def test_pins_and_notes_stay_in_view(self):
        task = self.create(chat(200))
        task.pin(10)
        note = task.note("parts are never thrown away")
        task.manage(window="4k")
        self.assertIn("what of part 2?", str(task.view()))
        self.assertIn("parts are never thrown away", str(task.view()))
        task.unpin(10)
        task.unpin(note["note"])
        self.assertNotIn("parts are never thrown away", str(task.view()))

    def test_the_same_key_appends_once(self):
        task = self.create()
        hello = {"role": "user", "content": "hello"}
        self.assertEqual(task.append(hello, key="first"), range(1, 2))
        self.assertEqual(task.append(hello, key="first"), range(1, 2))
        with self.assertRaises(infold.UsageError):
            task.append({"role": "user", "content": "other"}, key="first")
        self.assertEqual(task.view(), [hello])

    def test_nothing_is_stored_of_messages_of_which_one_is_none(self):
        task = self.create()
        with self.assertRaisesRegex(infold.UsageError, 'message 2: no "content"'):
            task.append([{"role": "user", "content": "hello"}, {"role": "user"}])
        self.assertEqual(task.view(), [])

    def test_secrets_are_kept_off_the_disk(self):
        task = infold.Task.create(self.contexts, redact=True)
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        task.append({"role": "user", "content": f"the token is {secret}"})
        stored = b"".join(path.read_bytes() for path in self.contexts.rglob("*") if path.is_file())
        self.assertNotIn(secret.encode(), stored)

    def test_errors_have_hints(self):
        task = self.create(chat(2))
        for error, hint, call in [
            (infold.RefusedError, None, lambda: task.undo()),
            (infold.RefusedError, "nothing after it", lambda: task.redo()),
            (infold.UsageError, "info()", lambda: task.recall(400)),
            (infold.UsageError, None, lambda: task.unfold("x")),
            (infold.UsageError, None, lambda: task.rewind()),
            (infold.UsageError, None, lambda: task.fold("9..3", "x")),
            (infold.UsageError, "nothing was folded", lambda: task.fold("2..5", " ")),
            (infold.UsageError, "infold.tasks()", lambda: infold.Task.open("ffff", self.contexts)),
            (infold.UsageError, None, lambda: infold.Task.create(self.contexts, wire="telex")),
            (infold.UsageError, "exact=True", lambda: infold.search("(", contexts=self.contexts, regex=True)),
            (infold.UsageError, "window=32_000", lambda: task.manage()),
        ]:
            with self.subTest(call), self.assertRaises(error) as raised:
                call()
            if hint:
                self.assertIn(hint, raised.exception.hint)

    def test_threads_append_one_after_another(self):
        task = self.create()

        def work(name):
            for at in range(5):
                task.append([{"role": "user", "content": f"{name} {at}"}, {"role": "assistant", "content": "noted"}])

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(task.view()), 40)
        # It fails if anything is damaged.
        self.seen_by_command("verify", task.id)


if __name__ == "__main__":
    unittest.main()
