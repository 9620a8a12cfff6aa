#include "engine/delta/cpu/change_finder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "engine/base/check.h"
#include "engine/delta/cpu/kernel.h"
#include "engine/delta/cpu/start_thread.h"

namespace areal::delta {
namespace {

// Fewer weights than this are not worth a thread: starting one takes as long as reading them.
constexpr std::uint64_t kThreadShare = 1 << 18;

Kernels kernels_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::kScalar:
      return scalar_kernels();
#ifdef AREAL_X86_KERNELS
    case InstructionSet::kAvx2:
      return avx2_kernels();
    case InstructionSet::kAvx512:
      return avx512_kernels();
#else
    case InstructionSet::kAvx2:
    case InstructionSet::kAvx512:
      break;
#endif
  }
  AREAL_CHECK(false);
}

template <class Index>
struct Scratch {
  MarkedBits bits;
  std::array<Index, kKernelBlock> indices;
  std::array<std::uint16_t, kKernelBlock> values;
};

// Only what is marked costs anything here.
template <class Index>
void append(Scratch<Index>& scratch, const KernelBlock& block, std::uint64_t first, FoundChanges<Index>& found) {
  std::uint32_t count = 0;
  for (std::uint32_t start = 0; start < block.count; start += 64) {
    for (std::uint64_t word = scratch.bits.words[start / 64]; word != 0; word &= word - 1) {
      const std::uint32_t i = start + static_cast<std::uint32_t>(std::countr_zero(word));
      scratch.indices[count] = static_cast<Index>(first + i);
      scratch.values[count] = to_bf16(block.weights[i]);
      ++count;
    }
  }
  found.indices.insert(found.indices.end(), scratch.indices.data(), scratch.indices.data() + count);
  found.values.insert(found.values.end(), scratch.values.data(), scratch.values.data() + count);
}

struct Job {
  const ChangeRule& rule;
  const OptimizerSpans& spans;
  Kernels kernels;
};

// Appends what is marked in [begin, end).
template <class Index>
void find_range(const Job& job, std::uint64_t begin, std::uint64_t end, FoundChanges<Index>& found) {
  const MarginScalars margin{job.rule.inversion().step_size, job.rule.inversion().bc2, job.rule.inversion().epsilon,
                             job.rule.inversion().decay, job.rule.margin_rel()};
  Scratch<Index> scratch;
  KernelBlock block;
  for (std::uint64_t i = begin; i < end; i += kKernelBlock) {
    block.weights = job.spans.weights.data() + i;
    block.exp_avg = job.spans.exp_avg.data() + i;
    block.exp_avg_sq = job.spans.exp_avg_sq.data() + i;
    block.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kKernelBlock, end - i));
    if (job.rule.is_proven()) {
      job.kernels.proven(job.rule.proven_scalars(), block, scratch.bits);
    } else {
      job.kernels.margin(margin, block, scratch.bits);
    }
    append(scratch, block, job.spans.first_index + i, found);
  }
}

template <class Index>
void find_all(const Job& job, std::uint32_t threads, std::vector<FoundChanges<Index>>& parts,
              FoundChanges<Index>& found) {
  const std::uint64_t count = job.spans.weights.size();
  AREAL_CHECK(job.spans.exp_avg.size() == count);
  AREAL_CHECK(job.spans.exp_avg_sq.size() == count);
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  AREAL_CHECK(count == 0 || (job.spans.first_index <= most && count - 1 <= most - job.spans.first_index));

  found.indices.clear();
  found.values.clear();
  const std::uint64_t shares = std::clamp<std::uint64_t>(count / kThreadShare, 1, threads);
  const auto bound = [&](std::uint64_t share) { return count / shares * share + std::min(share, count % shares); };
  parts.resize(std::max<std::size_t>(parts.size(), shares - 1));
  std::vector<std::thread> running;
  for (std::uint64_t share = 1; share < shares; ++share) {
    FoundChanges<Index>& part = parts[share - 1];
    part.indices.clear();
    part.values.clear();
    running.push_back(start_thread(
        [&job, &part, begin = bound(share), end = bound(share + 1)] { find_range(job, begin, end, part); }));
  }
  find_range(job, 0, bound(1), found);
  for (std::uint64_t share = 1; share < shares; ++share) {
    if (running[share - 1].joinable()) running[share - 1].join();
    const FoundChanges<Index>& part = parts[share - 1];
    found.indices.insert(found.indices.end(), part.indices.begin(), part.indices.end());
    found.values.insert(found.values.end(), part.values.begin(), part.values.end());
  }
}

}  // namespace

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::kScalar:
      return "scalar";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  AREAL_CHECK(false);
}

bool has_instructions(InstructionSet set) {
  switch (set) {
    case InstructionSet::kScalar:
      return true;
#ifdef AREAL_X86_KERNELS
    case InstructionSet::kAvx2:
      return __builtin_cpu_supports("avx2") != 0;
    case InstructionSet::kAvx512:
      return __builtin_cpu_supports("avx512f") != 0;
#else
    case InstructionSet::kAvx2:
    case InstructionSet::kAvx512:
      return false;
#endif
  }
  AREAL_CHECK(false);
}

InstructionSet best_instructions() {
  if (has_instructions(InstructionSet::kAvx512)) return InstructionSet::kAvx512;
  return has_instructions(InstructionSet::kAvx2) ? InstructionSet::kAvx2 : InstructionSet::kScalar;
}

ChangeRule ChangeRule::proven(const ProvenStep& step) { return proven(delta::proven_scalars(step)); }

ChangeRule ChangeRule::proven(const ProvenScalars& scalars) {
  ChangeRule rule;
  rule.proven_ = scalars;
  return rule;
}

ChangeRule ChangeRule::margin(const InversionScalars& scalars, float margin_rel) {
  ChangeRule rule;
  rule.is_proven_ = false;
  rule.inversion_ = scalars;
  rule.margin_rel_ = margin_rel;
  return rule;
}

struct ChangeFinder::Parts {
  std::vector<FoundChanges<std::int32_t>> narrow;
  std::vector<FoundChanges<std::int64_t>> wide;
};

ChangeFinder::ChangeFinder(const FinderOptions& options) : options_(options), parts_(std::make_unique<Parts>()) {
  AREAL_CHECK(options.threads > 0);
  AREAL_CHECK(has_instructions(options.instructions));
}

ChangeFinder::~ChangeFinder() = default;

void ChangeFinder::find(const ChangeRule& rule, const OptimizerSpans& spans, FoundChanges<std::int32_t>& found) {
  find_all({rule, spans, kernels_of(options_.instructions)}, options_.threads, parts_->narrow, found);
}

void ChangeFinder::find(const ChangeRule& rule, const OptimizerSpans& spans, FoundChanges<std::int64_t>& found) {
  find_all({rule, spans, kernels_of(options_.instructions)}, options_.threads, parts_->wide, found);
}

}  // namespace areal::delta
