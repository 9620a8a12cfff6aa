"""The exit status that a scenario promises, read from its text."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from expected_exit import expected_exit  # noqa: E402


class ExpectedExit(unittest.TestCase):
    def test_default_is_held(self):
        self.assertEqual(0, expected_exit("scenario:\n  name: a\n"))
        self.assertEqual(0, expected_exit("scenario:\n  expect:\n    published: 3\n"))

    def test_block_and_flow_form(self):
        self.assertEqual(1, expected_exit("scenario:\n  expect:\n    # why\n    verdict: violation\n    node: e*\n"))
        self.assertEqual(3, expected_exit("scenario:\n  expect: {node: a, verdict: liveness}\n  name: x\n"))

    def test_only_the_expect_block_counts(self):
        self.assertEqual(0, expected_exit("scenario:\n  expect:\n    published: 1\n  other:\n    verdict: violation\n"))
        self.assertEqual(0, expected_exit("scenario:\n  with_defect:\n    verdict: violation\n"))

    def test_a_run_that_must_not_be_what_it_expects_says_so(self):
        self.assertEqual(1, expected_exit("# exit: 1\nscenario:\n  expect: {verdict: held}\n"))

    def test_the_scenarios_of_the_project_have_one(self):
        folder = pathlib.Path(__file__).resolve().parents[2] / "scenarios"
        found = {file.stem: expected_exit(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.yaml"))}
        self.assertEqual(1, found.pop("canary"))
        self.assertEqual({0}, set(found.values()))

    def test_unknown_verdict_is_refused(self):
        self.assertRaises(KeyError, expected_exit, "expect: {verdict: fine}\n")


if __name__ == "__main__":
    unittest.main()
