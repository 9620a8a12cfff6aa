// The arithmetic of training on one thread: losses with their gradients, advantages and packing, beside touching the
// same memory and torch.
//
//   algo_bench [--tokens N]           one table; ratios are of neighbours in this run
//   algo_bench --peers [--tokens N]   the same with torch eager on one thread, and results compared with it
//   algo_bench --quick                few tokens, no torch
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "bench/algo_advantages.h"
#include "bench/algo_peers.h"
#include "bench/arguments.h"
#include "bench/samples.h"
#include "engine/algo/cispo_loss.h"
#include "engine/algo/critic_loss.h"
#include "engine/algo/loss_kernel.h"
#include "engine/algo/ppo_loss.h"
#include "engine/algo/sapo_loss.h"

namespace areal::bench {
namespace {

struct Wishes {
  bool peers = false;
  std::size_t tokens = std::size_t{16} << 20;
  int samples = 9;
};

// One loss over all arrays; what it gives lies in `loss` and `gradient`.
struct Subject {
  const char* name;
  std::string torch;  // Empty: torch has no such row.
  std::function<void()> run;
  const float* loss;
  const std::vector<float>* gradient;
};

void require(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "algo_bench: %s\n", status.error().detail.c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is one thread.
}

struct Results {
  algo::PolicyLoss ppo, dual, full, cispo, sapo;
  algo::CriticLoss critic;
};

std::vector<Subject> subjects(const TokenArrays& arrays, Results& into) {
  using algo::Statistics;
  const algo::PolicyTokens tokens{arrays.logprobs, arrays.proximal, arrays.old, arrays.advantages, arrays.mask};
  algo::PolicyTokens to_old = tokens;
  to_old.old = arrays.proximal;  // So that every loss reads the same arrays.
  const algo::ValueElements values{arrays.logprobs, arrays.proximal, arrays.advantages, algo::Mask(arrays.mask)};
  algo::PpoSettings plain;
  plain.clip_higher = 0.28;
  algo::PpoSettings bounded = plain;
  bounded.dual_clip = 3.0;
  algo::CispoSettings cispo;
  cispo.clip_higher = 0.28;
  const auto left_out = Statistics::kLeaveOut;
  const auto policy = [](const char* name, const char* torch, std::function<void()> run, algo::PolicyLoss& loss) {
    return Subject{name, torch, std::move(run), &loss.loss, &loss.gradient};
  };
  return {policy(
              "PPO", "ppo", [=, &into] { require(ppo_actor_loss(plain, tokens, left_out, into.ppo)); }, into.ppo),
          policy(
              "PPO with dual clip", "ppo_dual",
              [=, &into] { require(ppo_actor_loss(bounded, tokens, left_out, into.dual)); }, into.dual),
          policy(
              "PPO with statistics", "",
              [=, &into] { require(ppo_actor_loss(plain, tokens, Statistics::kFill, into.full)); }, into.full),
          policy(
              "CISPO", "cispo", [=, &into] { require(cispo_loss(cispo, tokens, left_out, into.cispo)); }, into.cispo),
          policy(
              "SAPO", "sapo", [=, &into] { require(sapo_loss({}, to_old, left_out, into.sapo)); }, into.sapo),
          Subject{"critic", "critic", [=, &into] { require(critic_loss({0.2}, values, left_out, into.critic)); },
                  &into.critic.loss, &into.critic.gradient}};
}

// Largest difference of a gradient, as a share of the largest entry.
double greatest_difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
  if (ours.size() != theirs.size()) return INFINITY;
  double most = 0;
  double size = 1e-30;
  for (std::size_t at = 0; at < ours.size(); ++at) {
    most = std::max(most, std::abs(static_cast<double>(ours[at]) - static_cast<double>(theirs[at])));
    size = std::max(size, std::abs(static_cast<double>(theirs[at])));
  }
  return most / size;
}

struct Times {
  std::vector<double> touching, ours, torch;
};

bool measure(const Subject& subject, const TokenArrays& arrays, AlgoTorch* torch, const Wishes& wishes) {
  constexpr double kBytes = 17;  // Three floats and a mask read, one float written.
  Times times;
  std::vector<float> touched;
  bool is_equal = true;
  AlgoTorch* const peer = subject.torch.empty() ? nullptr : torch;
  for (int turn = 0; turn <= wishes.samples; ++turn) {
    const double touching = seconds_of([&] { touch_once(arrays, touched); });
    const double ours = seconds_of(subject.run);
    TorchLoss theirs;
    if (peer != nullptr) theirs = peer->run(subject.torch);
    if (turn > 0) {
      times.touching.push_back(touching);
      times.ours.push_back(ours);
      if (peer != nullptr) times.torch.push_back(theirs.seconds);
      continue;
    }
    if (peer == nullptr) continue;
    const double off = std::abs(static_cast<double>(*subject.loss) - theirs.loss);
    const double gradient = greatest_difference(*subject.gradient, peer->gradient(arrays.mask.size()));
    // Torch adds up in fp32.
    is_equal = off <= 1e-4 * std::max(0.01, std::abs(theirs.loss)) && gradient <= 1e-5;
    if (!is_equal) std::printf("  FAILED: %s: loss off by %g, gradient by %g\n", subject.name, off, gradient);
  }
  const Spread time = spread_of(times.ours);
  const Spread share = spread_of_ratios(times.touching, times.ours);
  const double tokens = static_cast<double>(arrays.mask.size());
  std::printf("  %-20s %6.0f (%5.0f to %5.0f)   %5.1f   %5.0f %% (%3.0f to %3.0f)", subject.name,
              tokens / 1e6 / time.median, tokens / 1e6 / time.most, tokens / 1e6 / time.least,
              kBytes * tokens / 1e9 / time.median, 100 * share.median, 100 * share.least, 100 * share.most);
  if (peer != nullptr) {
    const Spread slower = spread_of_ratios(times.torch, times.ours);
    std::printf("   %6.1f (%5.1f to %5.1f)", slower.median, slower.least, slower.most);
  }
  std::printf("\n");
  std::fflush(stdout);
  return is_equal;
}

bool run_all(const Wishes& wishes) {
  const TokenArrays arrays = make_tokens(wishes.tokens, 1);
  std::string why = "left out";
  const std::unique_ptr<AlgoTorch> torch =
      wishes.peers ? AlgoTorch::start(AREAL_SOURCE_DIR "/bench/peers/algo_torch.py", arrays, why) : nullptr;
  std::printf("%zu tokens, one thread, %s, torch %s\n", wishes.tokens,
              algo::avx2_loss_kernels() != nullptr ? "AVX2" : "portable",
              torch != nullptr ? torch->version().c_str() : why.c_str());
  std::printf("  %-20s %-24s   %-5s   %-21s   %s\n", "loss and gradient", "Mtoken/s, median", "GB/s", "of touching",
              torch != nullptr ? "torch takes, times" : "");
  Results results;
  bool is_good = !wishes.peers || torch != nullptr;
  for (const Subject& subject : subjects(arrays, results)) {
    is_good = measure(subject, arrays, torch.get(), wishes) && is_good;
  }
  return is_good && results.ppo.gradient == results.full.gradient;
}

int run(int count, char** arguments) {
  Arguments given("algo_bench", "Losses with their gradients, and advantages; one thread.");
  given.flag("peers", "beside the same in torch (python3-torch)").flag("quick", "little, to see that it runs");
  given.number("tokens", "tokens of the losses", {.preset = Wishes{}.tokens, .most = std::uint64_t{1} << 32});
  if (const auto status = given.parse(count, arguments)) return *status;
  Wishes wishes{.peers = given.has("peers"), .tokens = given["tokens"]};
  if (given.has("quick")) wishes = {.peers = false, .tokens = 100'003, .samples = 1};
  const bool is_good = run_all(wishes);
  measure_advantages({.is_quick = wishes.samples == 1, .has_peers = wishes.peers});
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace areal::bench

int main(int count, char** arguments) { return areal::bench::run(count, arguments); }
