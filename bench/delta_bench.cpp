// Finding changed bf16 weights on CPUs: speed beside its peers, and whether anything is missed.
//
//   delta_bench --peers [--weights N] [--threads N]   one table; ratios are of neighbours in this run
//   delta_bench --sweep N [--threads N]               N weights over 3 rates x decay {0, 0.01} x contraction
//   delta_bench --wire [--weights N] [--threads N]    bytes a change on the network, and the speed of coding
//   delta_bench --quick                               a little of both, without torch; exit 1 if anything is missed
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/arguments.h"
#include "bench/delta_peers.h"
#include "bench/delta_sweep.h"
#include "bench/delta_wire.h"
#include "bench/samples.h"
#include "engine/delta/cpu/kernel.h"

namespace areal::bench {
namespace {

using delta::ChangeFinder;
using delta::ChangeRule;
using delta::FoundChanges;

constexpr int kSamples = 7;
constexpr std::uint64_t kStep = 100;
// No element is that near a boundary, so this margin is none.
constexpr float kNoMargin = -1.0F;
constexpr double kMostOver = 1e-4;

struct Wishes {
  bool peers = false;
  bool wire = false;
  bool with_torch = true;
  std::size_t weights = std::size_t{64} << 20;
  std::uint64_t sweep = 0;
  std::uint32_t threads = 1;
  int samples = kSamples;
};

delta::AdamWSettings settings_at(double rate) { return {.learning_rate = rate, .weight_decay = 0.01, .beta2 = 0.95}; }

// The rate at which a wished share of bf16 weights changes.
double rate_for(double share, const OptimizerArrays& arrays) {
  const std::size_t count = std::min<std::size_t>(arrays.weights.size(), 1 << 20);
  ChangeFinder finder;
  FoundChanges<std::int32_t> found;
  double low = 1e-9;
  double high = 1e-2;
  for (int i = 0; i < 30; ++i) {
    const double middle = std::sqrt(low * high);
    finder.find(ChangeRule::margin(delta::inversion_scalars(settings_at(middle), kStep), kNoMargin),
                spans_of(arrays, count), found);
    (static_cast<double>(found.indices.size()) < share * static_cast<double>(count) ? low : high) = middle;
  }
  return high;
}

void print_row(const char* name, const std::vector<double>& seconds, const std::vector<double>& proven,
               const std::vector<double>& reading, std::size_t weights) {
  const Spread time = spread_of(seconds);
  const Spread slower = spread_of_ratios(seconds, proven);
  const Spread share = spread_of_ratios(reading, seconds);
  const double millions = static_cast<double>(weights) / 1e6;
  std::printf("  %-34s %7.0f (%5.0f to %5.0f)   %6.2f (%5.2f to %6.2f)   %5.1f %%\n", name, millions / time.median,
              millions / time.most, millions / time.least, slower.median, slower.least, slower.most,
              100 * share.median);
}

bool expect_equal(const char* what, const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  if (a == b) return true;
  std::printf("  FAILED: %s differ: %zu and %zu indices\n", what, a.size(), b.size());
  return false;
}

struct Times {
  std::vector<double> reading, proven, margin, plain, wide, passes, torch, guarded;
};

// One share of changes: everything in turns, the first turn not counted.
bool compare_at(double share, const OptimizerArrays& arrays, TorchPeer* torch, const Wishes& wishes) {
  const double rate = rate_for(share, arrays);
  const delta::InversionScalars inversion = delta::inversion_scalars(settings_at(rate), kStep);
  const ChangeRule proven = ChangeRule::proven(delta::proven_step(settings_at(rate), kStep));
  const ChangeRule margin = ChangeRule::margin(inversion);
  const ChangeRule plain = ChangeRule::margin(inversion, kNoMargin);
  const std::size_t count = arrays.weights.size();
  const delta::OptimizerSpans spans = spans_of(arrays, count);
  ChangeFinder finder({.threads = wishes.threads});
  MultiPass passes(count);
  FoundChanges<std::int32_t> by_proof;
  FoundChanges<std::int32_t> by_margin;
  FoundChanges<std::int32_t> by_bits;
  FoundChanges<std::int32_t> by_passes;
  FoundChanges<std::int64_t> wide;
  std::uint32_t joined = 0;
  Times times;
  bool is_equal = true;
  for (int i = 0; i <= wishes.samples; ++i) {
    std::array<double, 8> took{};
    took[0] = seconds_of([&] { joined |= read_once(arrays, wishes.threads); });
    took[1] = seconds_of([&] { finder.find(proven, spans, by_proof); });
    took[2] = seconds_of([&] { finder.find(margin, spans, by_margin); });
    took[3] = seconds_of([&] { finder.find(plain, spans, by_bits); });
    took[4] = seconds_of([&] { finder.find(proven, spans, wide); });
    if (wishes.threads == 1) took[5] = seconds_of([&] { passes.find(inversion, arrays, by_passes); });
    if (torch != nullptr) {
      took[6] = torch->find(inversion, false, 0);
      if (i == 0) is_equal = expect_equal("torch and bits alone", torch->indices(), by_bits.indices) && is_equal;
      took[7] = torch->find(inversion, true, delta::kReferenceMargin);
      if (i == 0) is_equal = expect_equal("guarded torch and margin", torch->indices(), by_margin.indices) && is_equal;
    }
    if (i == 0) continue;
    const std::array<std::vector<double>*, 8> all{&times.reading, &times.proven, &times.margin, &times.plain,
                                                  &times.wide,    &times.passes, &times.torch,  &times.guarded};
    for (std::size_t k = 0; k < all.size(); ++k) all[k]->push_back(took[k]);
  }
  if (wishes.threads == 1) is_equal = expect_equal("passes and bits", by_passes.indices, by_bits.indices) && is_equal;
  const auto percent = [&](std::size_t found) {
    return 100.0 * static_cast<double>(found) / static_cast<double>(count);
  };
  std::printf("changed %.3f %%, marked %.4f %% by proof and %.4f %% by margin (rate %.2e)\n",
              percent(by_bits.indices.size()), percent(by_proof.indices.size()), percent(by_margin.indices.size()),
              rate);
  print_row("reading p, m and v", times.reading, times.proven, times.reading, count);
  print_row("fused, proven bound, int32", times.proven, times.proven, times.reading, count);
  print_row("fused, proven bound, int64", times.wide, times.proven, times.reading, count);
  print_row("fused, reference's margin", times.margin, times.proven, times.reading, count);
  print_row("fused, bits alone", times.plain, times.proven, times.reading, count);
  if (wishes.threads == 1) print_row("C++ pass by pass, bits alone", times.passes, times.proven, times.reading, count);
  if (torch != nullptr) print_row("torch eager, bits alone", times.torch, times.proven, times.reading, count);
  if (torch != nullptr) print_row("torch eager, reference's margin", times.guarded, times.proven, times.reading, count);
  return is_equal && joined != 0;
}

bool compare_peers(const Wishes& wishes) {
  const OptimizerArrays arrays = make_arrays(wishes.weights, 1);
  std::string why = "left out";
  const std::unique_ptr<TorchPeer> torch =
      wishes.with_torch ? TorchPeer::start(AREAL_SOURCE_DIR "/bench/peers/delta_torch.py", arrays, wishes.threads, why)
                        : nullptr;
  std::printf("%zu weights, %u threads, %s, torch %s\n", wishes.weights, wishes.threads,
              std::string(name_of(delta::best_instructions())).c_str(),
              torch != nullptr ? torch->version().c_str() : why.c_str());
  std::printf("  %-34s %-26s   %-27s   %s\n", "", "Mweight/s, median of turns", "times as long as proven",
              "of reading");
  bool is_equal = true;
  for (const double share : {0.0008, 0.006, 0.016, 0.043, 0.25, 0.5}) {
    is_equal = compare_at(share, arrays, torch.get(), wishes) && is_equal;
  }
  return is_equal;
}

bool compare_wire(const Wishes& wishes) {
  const OptimizerArrays arrays = make_arrays(wishes.weights, 1);
  bool is_equal = true;
  for (const double share : {0.001, 0.01, 0.04, 0.1}) {
    const double rate = rate_for(share, arrays);
    is_equal = compare_wire_at(rate, delta::inversion_scalars(settings_at(rate), kStep), arrays,
                               {.threads = wishes.threads, .samples = wishes.samples}) &&
               is_equal;
  }
  return is_equal;
}

void print_counts(const char* name, const SweepCounts& counts) {
  std::printf("    %-36s %12llu weights, %6.2f %% changed, missed %llu, marked for nothing %.5f %%\n", name,
              static_cast<unsigned long long>(counts.weights),
              100.0 * static_cast<double>(counts.changed) / static_cast<double>(counts.weights),
              static_cast<unsigned long long>(counts.missed),
              100.0 * static_cast<double>(counts.over) / static_cast<double>(counts.weights));
}

bool sweep_all(const Wishes& wishes) {
  bool is_good = true;
  SweepResult sum;
  std::uint32_t cells = 0;
  const auto one = [&](SweepCell cell, std::uint64_t weights) {
    cell.number = cells++;
    const SweepResult result = sweep(cell, weights, wishes.threads);
    std::printf("  rate %.0e, decay %.2f, contraction %s\n", cell.learning_rate, cell.weight_decay,
                cell.is_contracted ? "on" : "off");
    print_counts("proven", result.proven);
    print_counts("proven, hard weights", result.proven_hard);
    print_counts("reference's margin", result.margin);
    print_counts("reference's margin, hard weights", result.margin_hard);
    is_good = is_good && result.proven.missed == 0 && result.proven_hard.missed == 0 &&
              static_cast<double>(result.proven.over) <= kMostOver * static_cast<double>(result.proven.weights);
    sum.proven.add(result.proven);
    sum.proven_hard.add(result.proven_hard);
    sum.margin.add(result.margin);
    sum.margin_hard.add(result.margin_hard);
    sum.quarter_hard.add(result.quarter_hard);
    std::fflush(stdout);
  };
  for (const double rate : {1e-6, 3e-6, 1e-5}) {
    for (const double decay : {0.0, 0.01}) {
      for (const bool is_contracted : {false, true}) one({rate, decay, is_contracted}, wishes.sweep / 12);
    }
  }
  std::printf("all of these\n");
  const SweepResult asked = sum;
  print_counts("proven", asked.proven);
  print_counts("proven, hard weights", asked.proven_hard);
  print_counts("reference's margin", asked.margin);
  print_counts("reference's margin, hard weights", asked.margin_hard);
  std::printf("beyond: half of all weights change\n");
  one({5e-5, 0.01, false}, wishes.sweep / 12);
  one({5e-5, 0.01, true}, wishes.sweep / 12);
  // A defect that the sweep must find, or it shows nothing.
  print_counts("defect: a quarter of the bound, hard", sum.quarter_hard);
  const bool is_found = sum.quarter_hard.missed > 0;
  std::printf("%s\n", is_good && is_found ? "nothing was missed, and the defect was found" : "FAILED");
  return is_good && is_found;
}

// Indices are int32; every order and hard stratum of a sweep needs a block in each of its 12 cells.
constexpr std::uint64_t kMostWeights = 1ULL << 31;
constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kLeastSweep = 12ULL * 168 * delta::kKernelBlock;
constexpr std::uint64_t kMostSweep = 1ULL << 50;

int run(int count, char** arguments) {
  Arguments given("delta_bench",
                  "Which weights changed, and their coding, on a CPU. At least one of --peers, --wire and "
                  "--sweep, or --quick.");
  given.flag("peers", "the finder, beside torch and plain loops").flag("no-torch", "leaves out torch");
  given.flag("wire", "coding and decoding").flag("quick", "little of everything, to see that it runs");
  given.number("weights", "weights of --peers and --wire", {.preset = Wishes{}.weights, .most = kMostWeights});
  given.number("sweep", "weights in which nothing may be missed, over all settings",
               {.preset = 0, .least = kLeastSweep, .most = kMostSweep});
  given.number("threads", "threads of the finder and of the sweep", {.preset = 1, .most = kMostThreads});
  if (const auto status = given.parse(count, arguments)) return *status;
  Wishes wishes{.peers = given.has("peers"),
                .wire = given.has("wire"),
                .with_torch = !given.has("no-torch"),
                .weights = given["weights"],
                .sweep = given["sweep"],
                .threads = static_cast<std::uint32_t>(given["threads"])};
  if (given.has("quick")) {
    wishes = {.peers = true, .wire = true, .with_torch = false, .weights = 100'000, .sweep = 6'000'000, .samples = 1};
  }
  if (!wishes.peers && !wishes.wire && wishes.sweep == 0) {
    std::fprintf(stderr, "delta_bench: what? --peers, --wire, --sweep N or --quick; --help shows the options\n");
    return 64;
  }
  bool is_good = true;
  if (wishes.peers) is_good = compare_peers(wishes) && is_good;
  if (wishes.wire) is_good = compare_wire(wishes) && is_good;
  if (wishes.sweep > 0) is_good = sweep_all(wishes) && is_good;
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace areal::bench

int main(int count, char** arguments) { return areal::bench::run(count, arguments); }
