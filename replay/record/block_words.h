// The lines of a recording as their canonical words, block by block: what comparing needs, and nothing of what printing
// does.
//
// Where there is more than one core a thread unpacks the next blocks meanwhile; the reader is then this object's alone
// until stop(). Lines are checked against the chain. Not thread-safe.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "engine/base/result.h"
#include "engine/port/trace_digest.h"
#include "replay/record/run_reader.h"

namespace areal::record {

class BlockWords {  // NOLINT(clang-analyzer-optin.performance.Padding): a hash's state is aligned to 64 bytes.
 public:
  enum class Ahead : std::uint8_t { kAuto, kNever, kAlways };

  // The reader must outlive it.
  explicit BlockWords(const RunReader& reader, Ahead ahead = Ahead::kAuto);
  ~BlockWords();
  BlockWords(const BlockWords&) = delete;
  BlockWords& operator=(const BlockWords&) = delete;

  // The words of the next block, good until the next call; none at the end.
  Result<std::span<const std::uint64_t>> next();
  // Reads no further; next() is not called again.
  void stop();

 private:
  struct Block {
    std::vector<std::uint64_t> words;
    Status status = Unit{};
  };

  Block read(std::size_t index);
  Block take();
  void read_ahead();

  const RunReader& reader_;
  port::TraceDigest walk_;
  std::size_t next_ = 0;  // To be given.
  Block given_;
  std::mutex mutex_;  // Of the three below.
  std::condition_variable changed_;
  std::deque<Block> ready_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace areal::record
