// What makes training repeat bit for bit: environment variables of a process, and switches of a model's configuration.
//
// The switches only work if they are set before the model is built: its modules read them once, as they are made. So
// they are refused afterwards. Pure values. Source: deterministic training of Transformer Engine, NCCL and cuBLAS.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/result.h"

namespace areal::algo {

// Of a process, before it loads any of those libraries.
struct DeterministicEnvironment {
  std::string nccl_algo;                         // NCCL_ALGO: a fixed order of reduction.
  std::string cublas_workspace_config;           // CUBLAS_WORKSPACE_CONFIG.
  std::string nvte_allow_nondeterministic_algo;  // NVTE_ALLOW_NONDETERMINISTIC_ALGO.
  bool operator==(const DeterministicEnvironment&) const = default;
};

// From what the user set; a value that would not repeat is replaced.
DeterministicEnvironment deterministic_environment(std::optional<std::string_view> nccl_algo,
                                                   std::optional<std::string_view> cublas_workspace_config);

// Whether the environment of Transformer Engine comes too late: it is loaded, and nobody had set it before.
constexpr bool environment_too_late(bool library_loaded, bool already_set) { return library_loaded && !already_set; }

// Whether an inference server samples the same again with this attention backend; none named: it chooses one that does.
bool samples_again(std::optional<std::string_view> attention_backend);

// As in the configuration of a transformer.
struct DeterminismSwitches {
  bool deterministic_mode = false;
  bool cross_entropy_loss_fusion = true;
  bool bias_dropout_fusion = true;
  std::string attention_backend = "auto";
  bool operator==(const DeterminismSwitches&) const = default;
};

class DeterministicModel {
 public:
  explicit DeterministicModel(DeterminismSwitches switches) : switches_(std::move(switches)) {}

  [[nodiscard]] const DeterminismSwitches& switches() const { return switches_; }
  // Before the model is built: all of them. kInvalid: it is built already.
  Status make_deterministic();
  // The model is built from the switches as they are now.
  void built() { built_ = true; }
  // After the build frameworks may have put defaults back: sets the mode and the fusions again, and leaves the
  // attention backend, which cannot change any more. kInvalid: the model was not built deterministic, or is not built.
  Status confirm();
  // What a framework does to the configuration on its own.
  void overwrite(DeterminismSwitches switches) { switches_ = std::move(switches); }

 private:
  DeterminismSwitches switches_;
  bool built_ = false;
  bool deterministic_ = false;
};

}  // namespace areal::algo
