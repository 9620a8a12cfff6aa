"""The layer lint and the size lint on small trees that break a rule and on trees that do not."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_layers  # noqa: E402
import check_sizes  # noqa: E402


def messages(files, path):
    """The findings in `path` of a tree with these files: path -> text."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return list(check_layers.check_file(path, root))


def include_of(path, target):
    return messages({target: "", path: f'#pragma once\n#include "{target}"\n'}, path)


class Layers(unittest.TestCase):
    def test_table_has_no_cycle(self):
        done = set()

        def visit(layer, above):
            self.assertNotIn(layer, above, "cycle")
            for below in check_layers.MAY_INCLUDE[layer] or []:
                if below not in done:
                    visit(below, [*above, layer])
            done.add(layer)

        for layer in check_layers.MAY_INCLUDE:
            visit(layer, [])

    def test_downwards_is_allowed(self):
        for path, target in [("engine/proto/a.cpp", "engine/base/b.h"), ("engine/proto/a.cpp", "engine/port/types.h"),
                             ("engine/proto/a.cpp", "engine/proto/b.h"), ("engine/node/a.cpp", "engine/port/transport.h"),
                             ("sim/world/a.cpp", "engine/node/node.h"), ("sim/check/a.cpp", "engine/port/notes.h"),
                             ("tests/unit/a_test.cpp", "sim/cli/x.h"), ("sim/main.cpp", "sim/cli/x.h")]:
            self.assertEqual([], include_of(path, target), path)

    def test_upwards_and_sideways_are_found(self):
        for path, target in [("engine/base/a.cpp", "engine/port/types.h"), ("engine/delta/a.cpp", "engine/config/x.h"),
                             ("engine/node/a.cpp", "sim/kernel/q.h"), ("sim/check/a.cpp", "engine/proto/x.h"),
                             ("replay/record/a.cpp", "sim/world/w.h"), ("sim/world/a.cpp", "engine/real/host/l.h"),
                             ("engine/real/host/a.cpp", "sim/kernel/q.h"), ("sim/world/a.cpp", "replay/record/r.h")]:
            found = include_of(path, target)
            self.assertEqual([2], [line for line, _ in found], path)

    def test_protocols_see_no_interface(self):
        found = include_of("engine/proto/a.h", "engine/port/transport.h")
        self.assertEqual(1, len(found))
        self.assertIn("value headers", found[0][1])

    def test_paths_start_at_the_root(self):
        found = messages({"engine/base/b.h": "", "engine/base/a.h": '#include "b.h"\n'}, "engine/base/a.h")
        self.assertEqual([1], [line for line, _ in found])

    def test_unknown_folder_is_found(self):
        self.assertEqual(1, len(include_of("engine/extra/a.h", "engine/base/b.h")))

    def test_heavy_headers(self):
        good = [("sqlite3.h", "replay/record/writer.cpp"), ("yaml-cpp/yaml.h", "engine/config/scenario_reader.cpp"),
                ("cxxopts.hpp", "sim/cli/options.cpp"), ("nlohmann/json.hpp", "tests/unit/a_test.cpp"),
                ("nlohmann/json.hpp", "engine/algo/json_reader.cpp")]
        bad = [("sqlite3.h", "replay/record/writer.h"), ("sqlite3.h", "sim/world/a.cpp"), ("torch/torch.h", "engine/proto/a.cpp"),
               ("cuda_runtime_api.h", "sim/world/a.cpp"), ("nccl.h", "engine/node/a.cpp"), ("gloo/context.h", "sim/kernel/a.cpp"),
               ("yaml-cpp/yaml.h", "engine/config/gates.cpp"), ("cxxopts.hpp", "sim/main.cpp"), ("nlohmann/json.hpp", "replay/analyse/a.cpp")]
        for header, path in good:
            self.assertEqual([], messages({path: f"#include <{header}>\n"}, path), path)
        for header, path in bad:
            self.assertEqual(1, len(messages({path: f"#include <{header}>\n"}, path)), path)


class Sizes(unittest.TestCase):
    def test_long_files(self):
        self.assertEqual(([], []), check_sizes.check_text("a.cpp", "int x;\n" * 500))
        failures, warnings = check_sizes.check_text("a.cpp", "int x;\n" * 501)
        self.assertEqual((0, 1), (len(failures), len(warnings)))
        failures, _ = check_sizes.check_text("a.cpp", "int x;\n" * 1001)
        self.assertEqual(1, len(failures))

    def test_long_functions(self):
        def function(lines):
            return "namespace n {\nclass C {\n void f() {\n" + " x();\n" * (lines - 2) + " }\n};\n}\n"

        self.assertEqual([], check_sizes.check_text("a.cpp", function(70))[0])
        failures, _ = check_sizes.check_text("a.cpp", function(71))
        self.assertEqual(1, len(failures))
        self.assertTrue(failures[0].startswith("a.cpp:3: [size]"), failures[0])

    def test_long_tables_are_no_functions(self):
        table = "constexpr auto kRows = std::to_array<Row>({\n" + '    {"a", 1},\n' * 100 + "});\n"
        self.assertEqual([], check_sizes.check_text("a.cpp", table)[0])

    def test_unfinished_marks(self):
        self.assertEqual(1, len(check_sizes.check_text("a.cpp", "// TO" + "DO later\n")[0]))


if __name__ == "__main__":
    unittest.main()
