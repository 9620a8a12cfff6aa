#include "engine/algo/sapo_loss.h"

#include "engine/algo/loss_run.h"
#include "engine/algo/policy_terms.h"
#include "engine/algo/sequence_ratio.h"

namespace areal::algo {

namespace {

// 4 / tau is what the gate is multiplied by, in fp32: neither it nor tau may be infinite or 0 there.
bool is_temperature(double tau) {
  constexpr double kLeast = 0x1p-120;
  constexpr double kMost = 0x1p120;
  return tau >= kLeast && tau <= kMost;
}

void fill_token(const GateSlopes& slopes, const GateTerm<float>& term, float ratio, std::size_t at,
                TokenStatistics& statistics) {
  statistics.loss[at] = term.loss;
  statistics.ratio[at] = ratio;
  statistics.gate[at] = term.gate;
  statistics.gate_of_gain[at] = sapo_gate<float>(ratio, slopes.of_gain);
  statistics.gate_of_loss[at] = sapo_gate<float>(ratio, slopes.of_loss);
}

double sequence_loss(const GateSlopes& slopes, const PolicyTokens& tokens, float scale, Statistics statistics,
                     PolicyLoss& into) {
  const Rows& rows = *tokens.rows;
  const auto sequences = sequence_ratios(rows, tokens.logprobs, tokens.old, tokens.advantages, tokens.mask);
  const GateTerm<float> nothing = sapo_term<float>(0.0F, 0.0F, slopes.of_gain, slopes.of_loss);
  double sum = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const SequenceRatio& sequence = sequences[row];
    const GateTerm<float> term = sapo_term<float>(sequence.ratio, sequence.advantage, slopes.of_gain, slopes.of_loss);
    // Each kept token moves the log-ratio by 1 / kept, and that many terms with it.
    const float gradient = term.slope * sequence.ratio * scale;
    for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
      const bool is_kept = tokens.mask[at] != 0;
      if (is_kept) sum += static_cast<double>(term.loss);
      into.gradient[at] = is_kept ? gradient : 0.0F;
      if (statistics == Statistics::kLeaveOut) continue;
      fill_token(slopes, is_kept ? term : nothing, is_kept ? sequence.ratio : 0.0F, at, into.statistics);
      into.statistics.log_ratio[at] = tokens.logprobs[at] - tokens.old[at];
    }
  }
  return sum;
}

}  // namespace

Status sapo_loss(const SapoSettings& settings, const PolicyTokens& tokens, Statistics statistics, PolicyLoss& into) {
  AREAL_TRY(check_shapes(tokens));
  if (tokens.old.size() != tokens.logprobs.size()) return Error{Errc::kInvalid, "SAPO needs old log-probabilities"};
  if (!is_temperature(settings.tau_of_gain) || !is_temperature(settings.tau_of_loss)) {
    return Error{Errc::kInvalid, "SAPO's temperatures must be above 0, and within what fp32 can divide by"};
  }
  if (settings.level == RatioLevel::kSequence && tokens.rows == nullptr) {
    return Error{Errc::kInvalid, "ratios of packed sequences need to know where they lie (cu_seqlens)"};
  }
  const double denominator = denominator_of(tokens.mask);
  const TokenArrays in = arrays_of(tokens, tokens.old, nullptr, denominator);
  const GateSlopes slopes{static_cast<float>(settings.tau_of_gain), static_cast<float>(settings.tau_of_loss)};
  const TokenResults results = results_of(into, in.count, statistics, true);
  const double sum = settings.level == RatioLevel::kToken ? loss_kernels().sapo(slopes, in, results)
                                                          : sequence_loss(slopes, tokens, in.scale, statistics, into);
  into.loss = static_cast<float>(sum / denominator);
  return Unit{};
}

}  // namespace areal::algo
