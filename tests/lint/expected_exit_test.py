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
        self.assertEqual(1, expected_exit("scenario:\n  expect:\n    # why\n    verdict: safety\n    node: e*\n"))
        self.assertEqual(3, expected_exit("scenario:\n  expect: {node: a, verdict: liveness}\n  name: x\n"))

    def test_only_the_expect_block_counts(self):
        self.assertEqual(0, expected_exit("scenario:\n  expect:\n    published: 1\n  other:\n    verdict: safety\n"))
        self.assertEqual(0, expected_exit("scenario:\n  expect_defect:\n    verdict: safety\n"))

    def test_unknown_verdict_is_refused(self):
        self.assertRaises(KeyError, expected_exit, "expect: {verdict: fine}\n")


if __name__ == "__main__":
    unittest.main()
