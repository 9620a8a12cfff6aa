// Vectors of inverted AdamW steps on elements near rounding boundaries and on special values.
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "engine/base/check.h"
#include "engine/delta/inversion.h"
#include "tests/vectors/adamw_checks.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

Outcome check_inversion(const Json& vector) {
  const Json& in = vector.at("inputs");
  // Another kernel makes other weights forward; some cases have no forward step at all.
  const bool has_forward = in.value("kernel", "") == "torch" && in.contains("grad");
  for (const std::string& miss : {has_forward ? forward_miss(vector) : std::string{}, inversion_miss(vector)}) {
    if (!miss.empty()) return failed(miss);
  }
  return passed();
}

struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A step that was never made is the caller's mistake here, an exception there.
Outcome check_refusal(const Json& vector) {
  const Json& in = vector.at("inputs");
  const CheckHandler before =
      set_check_handler([](const char* condition, const char*, int) { throw CheckFailed(condition); });
  Outcome outcome = failed("nothing was refused");
  try {
    static_cast<void>(delta::inversion_scalars(settings_of(in), in.at("step")));
  } catch (const CheckFailed&) {
    outcome = passed();
  }
  set_check_handler(before);
  return outcome;
}

Outcome check_kernel(const Json& vector) {
  return vector.contains("error") ? check_refusal(vector) : check_inversion(vector);
}

}  // namespace

void add_adamw_boundary(std::vector<Checker>& registry) {
  registry.push_back({"adamw_boundary", "AdamW.step+invert_adamw", check_inversion});
  registry.push_back({"adamw_boundary", "invert_adamw", check_kernel});
}

}  // namespace areal::vectors
