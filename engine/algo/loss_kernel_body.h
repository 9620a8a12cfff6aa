// The loops over tokens, for the vector width of the including file. One file of each instruction set includes it.
//
// Terms are computed in vectors and then added one by one, so that the sum is that of a plain loop. What is masked is
// selected away before it meets a sum or a gradient. Everything is local to the including file.
#pragma once
#include "engine/algo/loss_kernel.h"
#include "engine/algo/policy_terms.h"

namespace areal::algo {

namespace lanes {
namespace {
#ifdef __AVX2__
constexpr std::size_t kWidth = 8;
#else
constexpr std::size_t kWidth = 4;
#endif
using Floats [[gnu::vector_size(kWidth * 4)]] = float;
using Words [[gnu::vector_size(kWidth * 4)]] = std::uint32_t;
using Flags [[gnu::vector_size(kWidth * 4)]] = std::int32_t;
// The byte of a word that belongs to each lane.
#ifdef __AVX2__
constexpr Words kLaneBytes = {0xFF, 0xFF00, 0xFF0000, 0xFF000000, 0xFF, 0xFF00, 0xFF0000, 0xFF000000};
#else
constexpr Words kLaneBytes = {0xFF, 0xFF00, 0xFF0000, 0xFF000000};
#endif
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}  // namespace
}  // namespace lanes

template <>
struct NumberTraits<lanes::Floats> {
  using Scalar = float;
  using Words = lanes::Words;
};

namespace {

using lanes::Flags;
using lanes::Floats;
using lanes::kWidth;
using lanes::Words;

[[gnu::always_inline]] inline Floats load(const float* from) {
  Floats values;
  __builtin_memcpy(&values, from, sizeof(values));
  return values;
}

[[gnu::always_inline]] inline void store(float* to, Floats values) { __builtin_memcpy(to, &values, sizeof(values)); }

// Flags from bytes: each lane looks at its byte of a word that all of its four have. Compilers widen bytes one by one.
[[gnu::always_inline]] inline Flags load(const std::uint8_t* from) {
  std::uint32_t words[kWidth / 4];
  __builtin_memcpy(words, from, sizeof(words));
#ifdef __AVX2__
  const Words spread = {words[0], words[0], words[0], words[0], words[1], words[1], words[1], words[1]};
#else
  const Words spread = {words[0], words[0], words[0], words[0]};
#endif
  return (spread & lanes::kLaneBytes) != 0;
}

[[gnu::always_inline]] inline void store(std::uint8_t* to, Flags flags) {
  const Words bits = __builtin_bit_cast(Words, flags) & lanes::kLaneBytes & 0x01010101U;
  std::uint64_t pairs[kWidth / 2];
  __builtin_memcpy(pairs, &bits, sizeof(pairs));
  for (std::size_t quarter = 0; quarter < kWidth / 4; ++quarter) {
    const std::uint64_t both = pairs[2 * quarter] | pairs[2 * quarter + 1];
    const std::uint32_t word = static_cast<std::uint32_t>(both | (both >> 32));
    __builtin_memcpy(to + 4 * quarter, &word, sizeof(word));
  }
}

[[gnu::always_inline]] inline Floats kept_only(Flags kept, Floats values) { return kept ? values : Floats{}; }

// The first `count` of them, one by one.
[[gnu::always_inline]] inline double add_up(double sum, Floats terms, std::size_t count) {
  for (std::size_t lane = 0; lane < count; ++lane) sum += static_cast<double>(terms[lane]);
  return sum;
}

// The terms of each whole vector, summed. A vector is added while the next one is computed: additions wait for one
// another, and would else keep processors from looking ahead.
template <class Step>
[[gnu::always_inline]] inline double sum_of_vectors(std::size_t whole, const Step step) {
  double sum = 0;
  Floats before{};
  for (std::size_t at = 0; at < whole; at += kWidth) {
    const Floats terms = step(at);
    sum = add_up(sum, before, kWidth);
    before = terms;
  }
  return add_up(sum, before, kWidth);
}

[[gnu::always_inline]] inline Floats weights_at(const TokenArrays& in, std::size_t at) {
  return in.weights != nullptr ? load(in.weights + at) : all_of<Floats>(1.0F);
}

template <bool kIsLean>
struct PpoStep {
  RatioBand band;
  TokenArrays in;
  TokenResults out;

  [[gnu::always_inline]] inline Floats operator()(std::size_t at) const {
    const Flags counted = load(in.counted + at);
    const Flags kept = kIsLean ? counted : load(in.kept + at);
    const Floats log_ratio = load(in.logprobs + at) - load(in.base + at);
    // Masked before exp(): what overflows there is nobody's ratio.
    const Floats ratio = kept_only(counted, exp_of<Floats>(kept_only(counted, log_ratio)));
    const ClipBand<float> clip{band.low, band.high, band.has_dual, band.dual};
    const RatioTerm<Floats> term = ppo_term<Floats>(ratio, load(in.advantages + at), clip);
    const Floats weight = kIsLean ? all_of<Floats>(1.0F) : weights_at(in, at);
    const Floats loss = kIsLean ? term.loss : term.loss * weight;
    const Floats counting = kept_only(kept, loss);
    const Floats scale = kIsLean ? all_of<Floats>(in.scale) : weight * all_of<Floats>(in.scale);
    store(out.gradient + at, kept_only(kept, term.slope * ratio * scale));
    if (kIsLean || out.loss == nullptr) return counting;
    store(out.loss + at, loss);
    store(out.ratio + at, ratio);
    store(out.log_ratio + at, log_ratio);
    store(out.is_clipped + at, term.is_clipped & counted);
    store(out.is_dual_clipped + at, term.is_dual_clipped & counted);
    return counting;
  }
};

template <bool kIsLean>
struct CispoStep {
  RatioBand band;
  TokenArrays in;
  TokenResults out;

  [[gnu::always_inline]] inline Floats operator()(std::size_t at) const {
    const Flags kept = load(in.kept + at);
    const Floats logprob = load(in.logprobs + at);
    const Floats log_ratio = logprob - load(in.base + at);
    // Statistics show masked ratios too; none of them passes the selections below.
    const Floats ratio = exp_of<Floats>(log_ratio);
    const ClipBand<float> clip{band.low, band.high, false, 0.0F};
    const RatioTerm<Floats> term = cispo_term<Floats>(ratio, load(in.advantages + at), logprob, clip);
    const Floats weight = kIsLean ? all_of<Floats>(1.0F) : weights_at(in, at);
    const Floats loss = kIsLean ? term.loss : term.loss * weight;
    const Floats counting = kept_only(kept, loss);
    const Floats scale = kIsLean ? all_of<Floats>(in.scale) : weight * all_of<Floats>(in.scale);
    store(out.gradient + at, kept_only(kept, term.slope * scale));
    if (kIsLean || out.loss == nullptr) return counting;
    store(out.loss + at, loss);
    store(out.ratio + at, ratio);
    store(out.log_ratio + at, log_ratio);
    store(out.is_clipped + at, term.is_clipped & kept);
    return counting;
  }
};

template <bool kIsLean>
struct SapoStep {
  GateSlopes slopes;
  TokenArrays in;
  TokenResults out;

  [[gnu::always_inline]] inline Floats operator()(std::size_t at) const {
    const Flags kept = load(in.kept + at);
    const Floats log_ratio = load(in.logprobs + at) - load(in.base + at);
    const Floats ratio = exp_of<Floats>(log_ratio);
    const GateTerm<Floats> term = sapo_term<Floats>(ratio, load(in.advantages + at), slopes.of_gain, slopes.of_loss);
    const Floats counting = kept_only(kept, term.loss);
    store(out.gradient + at, kept_only(kept, term.slope * ratio * all_of<Floats>(in.scale)));
    if (kIsLean || out.loss == nullptr) return counting;
    store(out.loss + at, term.loss);
    store(out.ratio + at, ratio);
    store(out.log_ratio + at, log_ratio);
    store(out.gate + at, term.gate);
    store(out.gate_of_gain + at, sapo_gate<Floats>(ratio, slopes.of_gain));
    store(out.gate_of_loss + at, sapo_gate<Floats>(ratio, slopes.of_loss));
    return counting;
  }
};

template <bool kIsLean>
struct CriticStep {
  ValueBand band;
  ValueArrays in;
  TokenResults out;

  [[gnu::always_inline]] inline Floats operator()(std::size_t at) const {
    const Flags kept = in.kept != nullptr ? load(in.kept + at) : ~Flags{};
    const ValueRule<float> rule{band.clip, band.is_huber, band.delta};
    const ValueTerm<Floats> term =
        critic_term<Floats>(load(in.values + at), load(in.old_values + at), load(in.targets + at), rule);
    const Floats counting = kept_only(kept, term.loss);
    store(out.gradient + at, kept_only(kept, term.slope * all_of<Floats>(in.scale)));
    if (kIsLean || out.loss == nullptr) return counting;
    store(out.loss + at, term.loss);
    store(out.is_clipped + at, term.is_clipped & kept);
    return counting;
  }
};

// The tokens beyond the last whole vector, in arrays of one vector's length: those behind the end are masked.
struct Tail {
  float floats[4][kWidth] = {};
  std::uint8_t bytes[2][kWidth] = {};
  float results[8][kWidth] = {};
  std::uint8_t flags[2][kWidth] = {};
};

template <class Value>
inline const Value* copied(Value (&to)[kWidth], const Value* from, std::size_t begin, std::size_t count) {
  if (from == nullptr) return nullptr;
  __builtin_memcpy(to, from + begin, count * sizeof(Value));
  return to;
}

template <class Value>
inline void copy_back(Value* to, const Value* from, std::size_t begin, std::size_t count) {
  if (to != nullptr) __builtin_memcpy(to + begin, from, count * sizeof(Value));
}

inline TokenResults results_in(Tail& tail, const TokenResults& out) {
  const auto place = [](auto* wanted, auto* here) { return wanted != nullptr ? here : nullptr; };
  return {tail.results[0],
          place(out.ratio, tail.results[1]),
          place(out.loss, tail.results[2]),
          place(out.log_ratio, tail.results[3]),
          place(out.is_clipped, tail.flags[0]),
          place(out.is_dual_clipped, tail.flags[1]),
          place(out.gate, tail.results[4]),
          place(out.gate_of_gain, tail.results[5]),
          place(out.gate_of_loss, tail.results[6])};
}

inline void copy_results(const TokenResults& from, const TokenResults& to, std::size_t begin, std::size_t count) {
  copy_back(to.gradient, from.gradient, begin, count);
  copy_back(to.ratio, from.ratio, begin, count);
  copy_back(to.loss, from.loss, begin, count);
  copy_back(to.log_ratio, from.log_ratio, begin, count);
  copy_back(to.is_clipped, from.is_clipped, begin, count);
  copy_back(to.is_dual_clipped, from.is_dual_clipped, begin, count);
  copy_back(to.gate, from.gate, begin, count);
  copy_back(to.gate_of_gain, from.gate_of_gain, begin, count);
  copy_back(to.gate_of_loss, from.gate_of_loss, begin, count);
}

// What is left behind whole vectors, in a place of a whole vector.
inline TokenArrays tail_of(const TokenArrays& in, Tail& tail, std::size_t begin, std::size_t count) {
  return {copied(tail.floats[0], in.logprobs, begin, count),
          copied(tail.floats[1], in.base, begin, count),
          copied(tail.floats[2], in.advantages, begin, count),
          copied(tail.bytes[0], in.counted, begin, count),
          copied(tail.bytes[1], in.kept, begin, count),
          copied(tail.floats[3], in.weights, begin, count),
          count,
          in.scale};
}
inline ValueArrays tail_of(const ValueArrays& in, Tail& tail, std::size_t begin, std::size_t count) {
  return {copied(tail.floats[0], in.values, begin, count),
          copied(tail.floats[1], in.old_values, begin, count),
          copied(tail.floats[2], in.targets, begin, count),
          copied(tail.bytes[0], in.kept, begin, count),
          count,
          in.scale};
}

template <class Step, class Rule, class Arrays>
inline double elements_by(const Rule& rule, const Arrays& in, const TokenResults& out) {
  const std::size_t whole = in.count / kWidth * kWidth;
  const double sum = sum_of_vectors(whole, Step{rule, in, out});
  const std::size_t rest = in.count - whole;
  if (rest == 0) return sum;
  Tail tail;
  const Arrays last = tail_of(in, tail, whole, rest);
  const TokenResults results = results_in(tail, out);
  const Floats terms = Step{rule, last, results}(0);
  copy_results(results, out, whole, rest);
  return add_up(sum, terms, rest);
}

// Eight bytes at a time: each byte's lowest bit becomes whether it is not 0, and a multiplication adds them up.
inline std::size_t count_bytes(const std::uint8_t* mask, std::size_t length) {
  std::size_t kept = 0;
  std::size_t at = 0;
  for (; at + 8 <= length; at += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, mask + at, 8);
    const std::uint64_t low_bits = 0x7F7F7F7F7F7F7F7FULL;
    const std::uint64_t is_set = ((((word & low_bits) + low_bits) | word) >> 7) & 0x0101010101010101ULL;
    kept += (is_set * 0x0101010101010101ULL) >> 56;
  }
  for (; at < length; ++at) kept += mask[at] != 0 ? 1U : 0U;
  return kept;
}

// Lean: no rejection, so that `kept` is `counted` and nothing has a weight, and nobody asks for statistics. Multiplying
// by 1 would give equal bits.
template <template <bool> class Step, class Rule>
inline double over_tokens(const Rule& rule, const TokenArrays& in, const TokenResults& out) {
  const bool is_lean = in.weights == nullptr && out.loss == nullptr;
  return is_lean ? elements_by<Step<true>>(rule, in, out) : elements_by<Step<false>>(rule, in, out);
}

inline double ppo_kernel(const RatioBand& band, const TokenArrays& in, const TokenResults& out) {
  return over_tokens<PpoStep>(band, in, out);
}
inline double cispo_kernel(const RatioBand& band, const TokenArrays& in, const TokenResults& out) {
  return over_tokens<CispoStep>(band, in, out);
}
inline double sapo_kernel(const GateSlopes& slopes, const TokenArrays& in, const TokenResults& out) {
  return over_tokens<SapoStep>(slopes, in, out);
}
inline double critic_kernel(const ValueBand& band, const ValueArrays& in, const TokenResults& out) {
  return out.loss == nullptr ? elements_by<CriticStep<true>>(band, in, out)
                             : elements_by<CriticStep<false>>(band, in, out);
}

constexpr LossKernels kKernels{ppo_kernel, cispo_kernel, sapo_kernel, critic_kernel, count_bytes};

}  // namespace
}  // namespace areal::algo
