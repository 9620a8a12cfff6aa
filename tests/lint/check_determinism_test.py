"""The determinism lint on snippets that must be found and on their twins that must pass."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_determinism  # noqa: E402

CORE = "engine/proto/sample.cpp"
WORLD = "sim/world/sample.cpp"

# rule -> (lines that it must find, lines that are what one writes instead)
SNIPPETS = {
    "wall-clock": (["auto t = std::chrono::steady_clock::now();", "sleep(1); nanosleep(&a, &b);", "#include <chrono>"],
                   ["const Instant now = clock.now();", "auto time = at.time(0);"]),
    "std-random": (["std::mt19937 g;", "std::ranges::shuffle(v, g);", "int x = rand();", "#include <random>"],
                   ["const auto pick = rng.draw_below(3);", "int y = operand(2);"]),
    "std-hash": (["auto h = std::hash<int>{}(3);"], ["auto h = hash_words(words);"]),
    "unordered": (["std::unordered_map<int, int> m;"], ["Table<NodeId, int> m{8};"]),
    "node-map": (["std::map<int, int> m;", "#include <set>"], ["std::vector<int> set;"]),
    "pointer-key": (["std::set<Node*> s;", "Table<const Node*, int> t;"], ["Table<NodeId, int> t{4};"]),
    "address-in-text": (['note("at %p", &x);', "auto n = reinterpret_cast<std::uintptr_t>(p);", 'fmt::format("{:p}", p);'],
                        ['note("id %d", id);']),
    "thread": (["std::atomic<int> n;", "thread_local int x;", "std::mutex m;"], ["int thread_count = 0;"]),
    "environment": (['auto home = getenv("HOME");', "auto n = std::thread::hardware_concurrency();"],
                    ["int environment = 0;"]),
    "raw-io": (["std::ifstream in(name);", 'printf("x");', "#include <filesystem>"],
               ['std::snprintf(buffer, 4, "x");', 'std::fprintf(stderr, "x");']),
    "unstable-sort": (["std::sort(a.begin(), a.end());", "std::ranges::sort(v);", "std::priority_queue<int> q;"],
                      ["std::stable_sort(a.begin(), a.end());", "std::ranges::stable_sort(v);"]),
    "padding-bytes": (["std::memcpy(&out, &in, sizeof(in));", "auto* p = reinterpret_cast<const char*>(&in);"],
                      ["const auto bits = std::bit_cast<std::uint32_t>(f);"]),
    "coroutine": (["co_await next();"], ["int co_worker = 0;"]),
    "locale-number": (["double x = std::strtod(s, &e);", "int n = std::stoi(s);", 'note("%.3f", x);'],
                      ["std::from_chars(a, b, n);", 'note("%d%%", n);']),
    "build-stamp": (["const char* d = __DATE__;"], ["const char* f = __FILE__;"]),
    "plain-assert": (["assert(x > 0);", "#include <cassert>"], ["static_assert(sizeof(x) == 8);", "AREAL_CHECK(x > 0);"]),
    "mutable-static": (["static int counter = 0;", "  static std::vector<int> cache;"],
                       ["static constexpr int kN = 3;", "static const int kM = 4;", "static int next(int x) { return x; }"]),
    "hidden-state": (["std::function<void()> f;", "std::shared_ptr<Plan> p;"], ["std::shared_ptr<const Plan> p;"]),
    "libm": (["auto y = std::exp(x);", "auto y = pow(x, 2);"], ["auto y = std::sqrt(x);", "entries.log(x);"]),
    "fast-math": (["auto s = std::reduce(a.begin(), a.end());"], ["auto s = std::ranges::min(a);"]),
    "float-decides": (["double rate = 1;"], ["std::uint64_t double_count = 1;"]),
    "two-draws": (["f(rng.draw_below(2), work.draw_below(3));", "auto x = Pair{a.draw_u64(),\n  b.draw_u64()};"],
                  ["const auto a = r.draw_u64(); const auto b = r.draw_u64();",
                   "if (r.draw_chance(1, 2)) { x = r.draw_u64(); }"]),
}


def rules_of(path, text):
    return {rule for _, rule, _ in check_determinism.scan_text(path, text + "\n")}


class Sources(unittest.TestCase):
    def test_every_rule_has_a_snippet(self):
        self.assertEqual(check_determinism.ALL_RULES - {"float-sum"}, set(SNIPPETS))

    def test_bad_lines_are_found(self):
        for rule, (bad, _) in SNIPPETS.items():
            for line in bad:
                with self.subTest(rule=rule, line=line):
                    self.assertIn(rule, rules_of(CORE, line))

    def test_good_lines_pass(self):
        for rule, (_, good) in SNIPPETS.items():
            for line in good:
                with self.subTest(rule=rule, line=line):
                    self.assertEqual(set(), rules_of(CORE, line))

    def test_sum_of_floats_is_found_outside_the_arithmetic_layers(self):
        text = "float total = 0;\nfor (float x : xs) total += x;\n"
        self.assertIn("float-sum", rules_of(WORLD, text))
        self.assertEqual(set(), rules_of("engine/delta/sample.cpp", text))
        self.assertIn("float-sum", rules_of(WORLD, "auto s = std::accumulate(a, b, 0.0f);"))

    def test_comments_and_strings_are_not_code(self):
        self.assertEqual(set(), rules_of(CORE, '// std::sort is banned\n/* rand()\n time(0) */ auto t = "std::thread";'))
        self.assertEqual(set(), rules_of(CORE, 'auto t = R"(std::mutex "x" rand())";'))

    def test_line_number_is_that_of_the_offence(self):
        found = check_determinism.scan_text(CORE, "int a;\n/* two\nlines */\nstd::mutex m;\n")
        self.assertEqual([(4, "thread")], [(line, rule) for line, rule, _ in found])

    def test_zones(self):
        line = "auto y = std::exp(std::chrono::steady_clock::now());"
        self.assertEqual({"libm", "wall-clock"}, rules_of(CORE, line))
        self.assertEqual({"wall-clock"}, rules_of("engine/algo/loss.cpp", line))
        for path in ["engine/real/host/loop.cpp", "sim/cli/run.cpp", "sim/main.cpp", "tests/unit/x_test.cpp"]:
            self.assertEqual(set(), rules_of(path, line), path)
        self.assertEqual({"two-draws"}, rules_of("tests/unit/x_test.cpp", "f(a.draw_u64(), a.draw_u64());"))
        self.assertEqual({"float-decides"}, rules_of("sim/kernel/queue.h", "double x;"))
        self.assertEqual(set(), rules_of("sim/world/link.h", "double x;"))


class Excuses(unittest.TestCase):
    def test_on_the_line_or_alone_above_it(self):
        self.assertEqual(set(), rules_of(CORE, "std::mutex m;  // det-ok: thread: guards the inbox only"))
        self.assertEqual(set(), rules_of(CORE, "// det-ok: thread: guards the inbox only\nstd::mutex m;"))

    def test_needs_a_reason_and_a_known_rule(self):
        self.assertEqual({"thread", "excuse"}, rules_of(CORE, "std::mutex m;  // det-ok: thread"))
        self.assertEqual({"thread", "excuse"}, rules_of(CORE, "std::mutex m;  // det-ok: threads: because"))

    def test_covers_its_own_rule_only(self):
        self.assertIn("std-random", rules_of(CORE, "std::mutex m; int x = rand();  // det-ok: thread: reason"))

    def test_excuse_without_offence_is_a_finding(self):
        self.assertEqual({"excuse"}, rules_of(CORE, "int m;  // det-ok: thread: no longer there"))


class Symbols(unittest.TestCase):
    def test_banned_symbols(self):
        banned = ["std::__detail::_Prime_rehash_policy::_M_next_bkt(unsigned long) const", "std::_Hash_bytes(void const*, unsigned long, unsigned long)",
                  "std::chrono::_V2::steady_clock::now()", "exp@GLIBC_2.29", "logf", "pow", "time", "rand", "getenv", "pthread_create",
                  "std::_Rb_tree_insert_and_rebalance(bool, std::_Rb_tree_node_base*)", "std::locale::locale()"]
        lines = [f"                 U {name}" for name in banned]
        self.assertEqual(sorted(banned), check_determinism.scan_symbols(lines))

    def test_harmless_symbols(self):
        harmless = ["sqrt", "fma", "memcpy", "areal::proto::Update::time()", "areal::log(int)", "strand", "operator new(unsigned long)"]
        self.assertEqual([], check_determinism.scan_symbols([f"                 U {name}" for name in harmless]))


if __name__ == "__main__":
    unittest.main()
