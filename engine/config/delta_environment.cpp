// Reads the DTE_* variables and their older names.
#include "engine/config/delta_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

namespace areal::config {
namespace {

constexpr std::array<std::string_view, 4> kTruthy = {"1", "true", "yes", "on"};

// More than a worker has, and far from where a count of bytes overflows.
constexpr double kMaxWindowMegabytes = 1e9;

// The variables of one worker. Keeps the first error.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  // `suffix` without DTE_; `older` is the prefix of the name that counts if that one is unset.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view suffix, std::string_view older,
                                                     bool blank_is_set = false) const {
    const std::string name = fmt::format("DTE_{}", suffix);
    const std::string old_name = fmt::format("{}_{}", older, suffix);
    const std::array<std::string_view, 1> fallbacks = {old_name};
    return find_variable(environment_, {name, fallbacks, blank_is_set});
  }

  void read_flag(std::string_view suffix, bool& target, std::string_view older = "AWEX") const {
    if (const auto value = find(suffix, older)) target = is_truthy(trimmed(*value), kTruthy);
  }

  void read_whole(std::string_view suffix, std::int64_t& target, std::string_view older = "AWEX") {
    const auto value = find(suffix, older);
    if (!value.has_value()) return;
    std::string_view digits = trimmed(*value);
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    const auto [rest, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), target);
    if (problem == std::errc{} && rest == digits.data() + digits.size()) return;
    refuse(fmt::format("invalid literal for int() with base 10: '{}'", *value));
  }

  // From 0 to `most`.
  void read_decimal(std::string_view suffix, double& target, double most) {
    const auto value = find(suffix, "AWEX");
    if (!value.has_value()) return;
    const std::string_view text = trimmed(*value);
    const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), target);
    if (problem != std::errc{} || rest != text.data() + text.size()) {
      return refuse(fmt::format("could not convert string to float: '{}'", *value));
    }
    // A NaN fits no comparison, so it is refused as well.
    if (!(target >= 0.0 && target <= most)) {
      refuse(fmt::format("DTE_{} must be from 0 to {}, got '{}'", suffix, most, *value));
    }
  }

  // A list with commas; blank: an empty one.
  void read_list(std::string_view suffix, std::vector<std::string>& target) const {
    const auto value = find(suffix, "AWEX", true);
    if (!value.has_value()) return;
    target.clear();
    for (std::size_t start = 0; start <= value->size();) {
      const std::size_t comma = std::min(value->find(',', start), value->size());
      const std::string_view item = trimmed(value->substr(start, comma - start));
      if (!item.empty()) target.emplace_back(item);
      start = comma + 1;
    }
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void refuse(std::string text) {
    if (!error_.has_value()) error_ = Error{Errc::kInvalid, std::move(text)};
  }

  const Environment& environment_;
  std::optional<Error> error_;
};

void read_tuning(Variables& variables, const Environment& environment, DeltaTuning& tuning) {
  constexpr double kMegabyte = 1 << 20;
  double megabytes = static_cast<double>(tuning.window) / kMegabyte;
  variables.read_flag("STREAMING_RECONSTRUCT", tuning.streaming_reconstruct, "PYQ");
  variables.read_decimal("INVERSION_ALLREDUCE_WINDOW_MB", megabytes, kMaxWindowMegabytes);
  variables.read_flag("INVERSION_COMPUTE_ON_CPU", tuning.compute_on_cpu);
  variables.read_decimal("DELTA_INVERSION_BF16_MARGIN_REL", tuning.bf16_margin, 1.0);
  variables.read_list("DELTA_INVERSION_DENSE_PARAM_SUFFIXES", tuning.dense_suffixes);
  variables.read_whole("BOUNDARY_CHUNK_ELEMS", tuning.boundary_chunk, "PYQ");
  variables.read_flag("DELTA_P2P_COALESCE", tuning.coalesce);
  variables.read_flag("DELTA_INVERSION_DEBUG", tuning.debug);
  if (const auto value = find_variable(environment, {.name = "AWEX_WU_USE_GROUP"})) {
    tuning.group_transfers = is_truthy(trimmed(*value), kTruthy);
  }
  if (!variables.error().has_value()) tuning.window = static_cast<std::uint64_t>(megabytes * kMegabyte);
}

}  // namespace

Result<DeltaEnvironment> DeltaEnvironment::read(const Environment& environment) {
  DeltaEnvironment snapshot;
  Variables variables(environment);
  variables.read_flag("DELTA_TRANSFER", snapshot.delta_transfer_);
  variables.read_flag("SEPARATION_WEIGHT_UPDATE", snapshot.separation_weight_update_);
  variables.read_whole("DELTA_ANCHOR_INTERVAL", snapshot.anchor_interval_);
  read_tuning(variables, environment, snapshot.tuning_);
  const auto& error = variables.error();
  if (error.has_value()) return *error;
  return snapshot;
}

bool DeltaEnvironment::is_always_dense(std::string_view parameter) const {
  return std::ranges::any_of(tuning_.dense_suffixes,
                             [parameter](const std::string& suffix) { return parameter.ends_with(suffix); });
}

Status check_delta_world(std::int64_t infer, std::int64_t train, std::int64_t combined) {
  const bool adds_up = infer > 0 && train > 0 && infer <= combined && combined - infer == train;
  if (adds_up && std::has_single_bit(static_cast<std::uint64_t>(combined))) return Unit{};
  return Error{Errc::kInvalid,
               fmt::format("DTE separation weight transfer requires a positive power-of-two combined world size with "
                           "awex==0.8.0; got inference={}, training={}, combined={}",
                           infer, train, combined)};
}

}  // namespace areal::config
