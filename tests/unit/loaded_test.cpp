// What a scenario must fit besides its own keys.
#include "sim/cli/loaded.h"

#include <gtest/gtest.h>

namespace areal::cli {
namespace {

constexpr const char* kScenario = R"(
scenario:
  name: small
  train: {backend: "megatron:d2t1"}
  rollout: {backend: "sglang:d2t1"}
  expect: {verdict: violation, invariant: INV-7%s}
)";

std::string scenario_with(const std::string& ending) {
  std::string text = kScenario;
  return text.replace(text.find("%s"), 2, ending);
}

TEST(LoadedScenario, AnExpectedInvariantMustBeOne) {
  EXPECT_TRUE(load_text(scenario_with(""), "small.yaml", Half::kNone));
  testing::internal::CaptureStderr();
  EXPECT_FALSE(load_text(scenario_with("7"), "small.yaml", Half::kNone));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("expect.invariant: no invariant is called 'INV-77'"), std::string::npos) << said;
}

}  // namespace
}  // namespace areal::cli
