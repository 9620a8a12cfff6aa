// Worked examples of what is compared as JSON text: fingerprints and tool schemas.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/json_value.h"
#include "engine/algo/mopd_fingerprint.h"
#include "engine/algo/tool_schema.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

Outcome check_fingerprint(const Json& vector) {
  const Json& in = vector.at("inputs");
  algo::Fingerprint got;
  if (in.at("kind") == "architecture") {
    const auto made = algo::architecture_fingerprint(in.at("config_json").dump());
    if (!made) return failed(made.error().detail);
    got = made.value();
  } else {
    const Json& payload = in.at("payload");
    const std::string vocabulary = payload.at("vocabulary").dump();
    const auto made = algo::tokenizer_fingerprint(
        {.vocab_json = vocabulary, .tokenizer_json = {}, .tokenizer_model = {}, .tokenizer_config_json = {}});
    if (!made) return failed(made.error().detail);
    got = made.value();
  }
  return expect_equal(vector.at("expected"), {{"canonical", got.canonical}, {"sha256", got.sha256}});
}

// The order of keys is what aligning is about, so texts are compared. The parsed example has lost its own order: the
// canonical one is written out here.
std::string ordered_text(const Json& tool) {
  if (!tool.is_object() || !tool.contains("function") || !tool.at("function").contains("strict")) return tool.dump();
  const Json& function = tool.at("function");
  return R"({"type":)" + tool.at("type").dump() + R"(,"function":{"description":)" + function.at("description").dump() +
         R"(,"name":)" + function.at("name").dump() + R"(,"parameters":)" + function.at("parameters").dump() +
         R"(,"strict":)" + function.at("strict").dump() + "}}";
}

Outcome check_tools(const Json& vector) {
  const Json& in = vector.at("inputs");
  const bool canonical = in.at("canonicaliser_available");
  std::vector<algo::JsonValue> tools;
  for (const Json& tool : in.at("tools")) {
    auto parsed = algo::parse_json(tool.dump());
    if (!parsed) return failed(parsed.error().detail);
    tools.push_back(std::move(parsed).value());
  }
  const algo::AlignedTools aligned = algo::align_tools(tools, canonical);
  const Json& wanted = vector.at("expected").at("tools");
  if (aligned.tools.size() != wanted.size()) return failed("another number of tools");
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    const std::string text = json_text(aligned.tools[at], algo::KeyOrder::kAsWritten);
    const Outcome outcome =
        canonical ? expect_equal(ordered_text(wanted[at]), text) : expect_equal(wanted[at], Json::parse(text));
    if (outcome.verdict != Verdict::kPassed) return outcome;
  }
  if (!vector.at("expected").contains("json")) return passed();
  // Byte for byte, with the order inside the parameters that reading the example has lost: what is aligned stays so.
  const std::string rendered = vector.at("expected").at("json");
  auto parsed = algo::parse_json(rendered);
  if (!parsed) return failed(parsed.error().detail);
  parsed->items = algo::align_tools(parsed->items, canonical).tools;
  return expect_equal(rendered, json_text(*parsed, algo::KeyOrder::kAsWritten));
}

}  // namespace

void add_json(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "mopd.fingerprint", check_fingerprint});
  registry.push_back({"spec_examples", "tools.align", check_tools});
}

}  // namespace areal::vectors
