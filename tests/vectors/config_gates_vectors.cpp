// Vectors of the pair registry and of what a pair must say.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/proto/pair_registry.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

using namespace proto;

Outcome check_info(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Result<PairMode> mode =
      check_pair_info(inputs.at("pair_name").get<std::string>(), inputs.at("mode").get<std::string>());
  if (vector.contains("error")) {
    if (mode) return failed("accepted, but wanted " + vector.at("error").dump());
    return expect_equal(vector.at("error").at("message"), mode.error().detail);
  }
  return mode ? expect_equal(vector.at("outputs"), {{"ok", true}}) : failed("refused: " + mode.error().detail);
}

// Names as numbers, in order of appearance.
class Names {
 public:
  PairId id_of(const std::string& name) {
    const auto place = std::ranges::find(names_, name);
    if (place != names_.end()) return PairId{static_cast<std::uint64_t>(place - names_.begin()) + 1};
    names_.push_back(name);
    return PairId{names_.size()};
  }
  const std::string& name_of(PairId id) const { return names_.at(id.value - 1); }

 private:
  std::vector<std::string> names_;
};

Outcome check_registry(const Json& vector) {
  PairRegistry registry;
  Names names;
  Json outputs = Json::object();
  std::string error;
  for (const Json& line : vector.at("inputs").at("ops")) {
    const std::string text = line;
    const std::string name = text.substr(std::min(text.size(), text.find(' ') + 1));
    if (text.starts_with("register ")) {
      error = refusal_text(registry.register_pair(names.id_of(name), PairMode::kAwex), name);
    } else if (text.starts_with("unregister ")) {
      if (!registry.unregister(names.id_of(name)).has_value()) outputs["missing_unregister"] = true;
    } else if (text == "list") {
      outputs["pairs"] = Json::array();
      for (const PairId id : registry.list()) outputs["pairs"].push_back(names.name_of(id));
    } else {
      return failed("unknown line " + text);
    }
  }
  if (vector.contains("error")) return expect_equal(vector.at("error").at("message"), error);
  return error.empty() ? expect_equal(vector.at("outputs"), outputs) : failed("refused: " + error);
}

}  // namespace

void add_config_gates(std::vector<Checker>& registry) {
  registry.push_back({"config_gates", "PairInfo", check_info});
  registry.push_back({"config_gates", "PairRegistry", check_registry});
}

}  // namespace areal::vectors
