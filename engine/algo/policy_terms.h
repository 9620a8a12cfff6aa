// What one token adds to a loss, and how that changes with the ratio: the formulas of PPO, CISPO, SAPO and the critic.
//
// Templates over the kind of number, so that one text serves vectors of floats in the kernels, single floats for
// sequences, and double in tests against differences. No mask and no sum here: who calls selects what counts. Sources:
// PPO, arXiv 1707.06347; dual clip, 1912.09729; CISPO, 2506.13585 (eq. 4 and 5); SAPO, 2511.20347; critic as in PPO's
// reference code. A ratio that overflowed gives an infinite or NaN slope times ratio, never a quiet 0.
#pragma once
#include "engine/algo/exponential.h"

namespace areal::algo {

// The ratio's band: [low, high]. `dual` bounds the loss by dual * |advantage|.
template <class Scalar>
struct ClipBand {
  Scalar low = 0;
  Scalar high = 0;
  bool has_dual = false;
  Scalar dual = 0;
};

// `flag` types are what comparing two Numbers gives.
template <class Number>
using FlagOf = decltype(Number{} < Number{});

template <class Number>
struct RatioTerm {
  Number loss{};
  Number slope{};  // d loss / d ratio
  FlagOf<Number> is_clipped{};
  FlagOf<Number> is_dual_clipped{};
};

// max(-A r, -A clip(r)), with dual clip the lesser of that and dual * |A|. Where both are equal, r is inside the band
// or A is 0, and every rule gives one slope.
template <class Number>
[[gnu::always_inline]] inline RatioTerm<Number> ppo_term(Number ratio, Number advantage,
                                                         const ClipBand<ScalarOf<Number>>& band) {
  const Number low = all_of<Number>(band.low);
  const Number high = all_of<Number>(band.high);
  const Number nothing = all_of<Number>(0);
  Number clipped = ratio > high ? high : ratio;
  clipped = clipped < low ? low : clipped;
  const Number plain = -advantage * ratio;
  const Number held = -advantage * clipped;
  RatioTerm<Number> term;
  term.is_clipped = plain < held;
  term.loss = term.is_clipped ? held : plain;
  term.slope = term.is_clipped ? nothing : -advantage;
  if (band.has_dual) {
    const Number size = advantage < nothing ? -advantage : advantage;
    const Number bound = all_of<Number>(band.dual) * size;
    term.is_dual_clipped = bound < term.loss;
    term.loss = term.is_dual_clipped ? bound : term.loss;
    term.slope = term.is_dual_clipped ? nothing : term.slope;
  }
  return term;
}

// -clip(r) A log pi, the clipped ratio held fixed: `slope` is by the log-probability.
template <class Number>
[[gnu::always_inline]] inline RatioTerm<Number> cispo_term(Number ratio, Number advantage, Number logprob,
                                                           const ClipBand<ScalarOf<Number>>& band) {
  const Number low = all_of<Number>(band.low);
  const Number high = all_of<Number>(band.high);
  Number clipped = ratio > high ? high : ratio;
  clipped = clipped < low ? low : clipped;
  RatioTerm<Number> term;
  term.is_clipped = clipped != ratio;
  term.slope = -clipped * advantage;
  term.loss = term.slope * logprob;
  return term;
}

template <class Number>
struct GateTerm {
  Number loss{};
  Number slope{};  // d loss / d ratio
  Number gate{};
};

// sigmoid(x) and its derivative. exp of what is never above 0 does not overflow.
template <class Number>
struct Sigmoid {
  Number value{};
  Number slope{};
};

template <class Number>
[[gnu::always_inline]] inline Sigmoid<Number> sigmoid(Number x) {
  const Number nothing = all_of<Number>(0);
  const Number one = all_of<Number>(1);
  const auto is_negative = x < nothing;
  const Number small = exp_of<Number>(is_negative ? x : -x);
  const Number whole = one + small;
  const Number share = one / whole;
  return {(is_negative ? small : one) * share, (small * share) * share};
}

// 4 / tau * sigmoid(tau (r - 1)).
template <class Number>
[[gnu::always_inline]] inline Number sapo_gate(Number ratio, ScalarOf<Number> tau) {
  const Number beyond_one = ratio - all_of<Number>(1);
  return sigmoid<Number>(all_of<Number>(tau) * beyond_one).value * all_of<Number>(ScalarOf<Number>(4) / tau);
}

// -gate A, with the temperature of gains where A > 0, else of losses.
template <class Number>
[[gnu::always_inline]] inline GateTerm<Number> sapo_term(Number ratio, Number advantage, ScalarOf<Number> tau_of_gain,
                                                         ScalarOf<Number> tau_of_loss) {
  using Scalar = ScalarOf<Number>;
  const auto is_gain = advantage > all_of<Number>(0);
  const Number tau = is_gain ? all_of<Number>(tau_of_gain) : all_of<Number>(tau_of_loss);
  const Number height = is_gain ? all_of<Number>(Scalar(4) / tau_of_gain) : all_of<Number>(Scalar(4) / tau_of_loss);
  const Sigmoid<Number> of_tau = sigmoid<Number>(tau * (ratio - all_of<Number>(1)));
  GateTerm<Number> term;
  term.gate = of_tau.value * height;
  term.loss = -term.gate * advantage;
  term.slope = -(all_of<Number>(4) * of_tau.slope) * advantage;
  return term;
}

template <class Scalar>
struct ValueRule {
  Scalar clip = 0;        // How far a value may move from the old one.
  bool is_huber = false;  // Else half the square.
  Scalar delta = 10;      // Where Huber's loss becomes linear.
};

template <class Number>
struct ValueTerm {
  Number loss{};
  Number slope{};  // d loss / d value
  FlagOf<Number> is_clipped{};
};

template <class Number>
struct Distance {
  Number loss{};
  Number slope{};
};

template <class Number>
[[gnu::always_inline]] inline Distance<Number> distance(Number value, Number target,
                                                        const ValueRule<ScalarOf<Number>>& rule) {
  using Scalar = ScalarOf<Number>;
  const Number off = value - target;
  Distance<Number> result{all_of<Number>(Scalar(0.5)) * off * off, off};
  if (rule.is_huber) {
    const Number delta = all_of<Number>(rule.delta);
    const Number size = off < all_of<Number>(0) ? -off : off;
    const auto is_far = size > delta;
    result.loss = is_far ? delta * (size - all_of<Number>(Scalar(0.5)) * delta) : result.loss;
    result.slope = is_far ? (off < all_of<Number>(0) ? -delta : delta) : result.slope;
  }
  return result;
}

// The greater of the distances of the value and of the old value moved by at most `clip` towards it. Where both are
// equal, the slope is the mean of theirs, as the reference's maximum has it.
template <class Number>
[[gnu::always_inline]] inline ValueTerm<Number> critic_term(Number value, Number old_value, Number target,
                                                            const ValueRule<ScalarOf<Number>>& rule) {
  const Number clip = all_of<Number>(rule.clip);
  const Number nothing = all_of<Number>(0);
  const Number moved = value - old_value;
  Number held = moved > clip ? clip : moved;
  held = held < -clip ? -clip : held;
  const Distance<Number> plain = distance<Number>(value, target, rule);
  const Distance<Number> clipped = distance<Number>(old_value + held, target, rule);
  ValueTerm<Number> term;
  term.is_clipped = clipped.loss > plain.loss;
  // NaN wins, as in the reference's maximum.
  term.loss = term.is_clipped ? clipped.loss : plain.loss;
  const Number through = held == moved ? clipped.slope : nothing;
  const Number between = all_of<Number>(ScalarOf<Number>(0.5)) * (plain.slope + through);
  term.slope = term.is_clipped ? through : (clipped.loss == plain.loss ? between : plain.slope);
  return term;
}

}  // namespace areal::algo
