#include "engine/algo/determinism.h"

#include <algorithm>
#include <array>

namespace areal::algo {

namespace {

template <std::size_t count>
std::string kept_or(std::optional<std::string_view> value, const std::array<std::string_view, count>& repeatable,
                    std::string_view otherwise) {
  const bool keep = value && std::ranges::find(repeatable, *value) != repeatable.end();
  return std::string(keep ? *value : otherwise);
}

}  // namespace

DeterministicEnvironment deterministic_environment(std::optional<std::string_view> nccl_algo,
                                                   std::optional<std::string_view> cublas_workspace_config) {
  constexpr std::array<std::string_view, 5> kAlgorithms = {"Tree", "Ring", "CollnetDirect", "CollnetChain", "^NVLS"};
  constexpr std::array<std::string_view, 2> kWorkspaces = {":4096:8", ":16:8"};
  return {.nccl_algo = kept_or(nccl_algo, kAlgorithms, "Ring"),
          .cublas_workspace_config = kept_or(cublas_workspace_config, kWorkspaces, ":4096:8"),
          .nvte_allow_nondeterministic_algo = "0"};
}

bool samples_again(std::optional<std::string_view> attention_backend) {
  constexpr std::array<std::string_view, 3> kBackends = {"flashinfer", "fa3", "triton"};
  return !attention_backend || std::ranges::find(kBackends, *attention_backend) != kBackends.end();
}

Status DeterministicModel::make_deterministic() {
  if (built_) return Error{Errc::kInvalid, "the model is built: its modules have read the switches already"};
  switches_ = {.deterministic_mode = true,
               .cross_entropy_loss_fusion = false,
               .bias_dropout_fusion = false,
               .attention_backend = "flash"};
  deterministic_ = true;
  return Unit{};
}

Status DeterministicModel::confirm() {
  if (!built_ || !deterministic_) return Error{Errc::kInvalid, "the model was not built from deterministic switches"};
  switches_.deterministic_mode = true;
  switches_.cross_entropy_loss_fusion = false;
  switches_.bias_dropout_fusion = false;
  return Unit{};
}

}  // namespace areal::algo
