#include "engine/delta/cpu/wire_threads.h"

#include <algorithm>
#include <optional>

#include "engine/base/check.h"
#include "engine/delta/cpu/start_thread.h"

namespace areal::delta {
namespace {

// Fewer blocks than this are not worth a thread.
constexpr std::uint64_t kShareBlocks = 16;

// Calls work(share, first block, block behind the last) for each share, in threads; returns when all have ended.
template <class Work>
void share_blocks(std::uint64_t blocks, std::uint64_t shares, const Work& work) {
  const auto bound = [&](std::uint64_t share) { return blocks / shares * share + std::min(share, blocks % shares); };
  std::vector<std::thread> running;
  for (std::uint64_t share = 1; share < shares; ++share) {
    running.push_back(
        start_thread([&work, share, first = bound(share), last = bound(share + 1)] { work(share, first, last); }));
  }
  work(0, bound(0), bound(1));
  for (std::thread& thread : running) {
    if (thread.joinable()) thread.join();
  }
}

std::uint64_t shares_of(std::uint64_t blocks, std::uint32_t threads) {
  AREAL_CHECK(threads > 0);
  return std::clamp<std::uint64_t>(blocks / kShareBlocks, 1, threads);
}

}  // namespace

Result<std::vector<std::uint8_t>> encode_by_threads(std::span<const wire::TensorChanges> tensors, wire::ValueKind kind,
                                                    std::uint32_t threads) {
  const Result<wire::EncodeTask> task = wire::EncodeTask::make(tensors, kind);
  if (!task) return task.error();
  std::vector<wire::BlockRun> runs(shares_of(task->blocks(), threads));
  std::vector<std::optional<Error>> errors(runs.size());
  share_blocks(task->blocks(), runs.size(), [&](std::uint64_t share, std::uint64_t first, std::uint64_t last) {
    Status status = wire::encode_blocks(*task, first, last, wire::Path::kFast, runs[share]);
    if (!status) errors[share] = std::move(status).error();
  });
  for (std::optional<Error>& error : errors) {
    if (error) return std::move(*error);
  }
  return wire::join_runs(*task, runs);
}

template <class Index, class Value>
Result<wire::DecodedChanges<Index, Value>> decode_by_threads(std::span<const std::uint8_t> bytes,
                                                             std::span<const wire::TensorBase> bases,
                                                             std::uint32_t threads) {
  const Result<wire::Message> message = wire::Message::open(bytes, wire::elements_of(bases));
  if (!message) return message.error();
  AREAL_TRY(wire::fits(*message, bases, sizeof(Index), sizeof(Value)));
  wire::DecodedChanges<Index, Value> decoded;
  decoded.offsets = message->starts().change;
  decoded.indices.resize(message->header().changes);
  decoded.values.resize(message->header().changes);
  const wire::ChangeRoom<Index, Value> room{decoded.indices, decoded.values};
  const std::uint64_t blocks = message->header().blocks;
  std::vector<Result<std::uint64_t>> contents(shares_of(blocks, threads), std::uint64_t{0});
  share_blocks(blocks, contents.size(), [&](std::uint64_t share, std::uint64_t first, std::uint64_t last) {
    contents[share] = wire::decode_blocks(*message, bases, first, last, wire::Path::kFast, room);
  });
  std::uint64_t sum = 0;
  for (const Result<std::uint64_t>& content : contents) {
    if (!content) return content.error();
    sum += *content;
  }
  AREAL_TRY(wire::check_content(*message, sum));
  return decoded;
}

#define AREAL_DECODE(Index, Value)                                                     \
  template Result<wire::DecodedChanges<Index, Value>> decode_by_threads<Index, Value>( \
      std::span<const std::uint8_t>, std::span<const wire::TensorBase>, std::uint32_t threads)
AREAL_DECODE(std::int32_t, std::uint16_t);
AREAL_DECODE(std::int32_t, std::uint32_t);
AREAL_DECODE(std::int64_t, std::uint16_t);
AREAL_DECODE(std::int64_t, std::uint32_t);
#undef AREAL_DECODE

}  // namespace areal::delta
