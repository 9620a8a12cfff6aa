// The lines of a recording as values, one after the other, so that two recordings can be walked side by side.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/port/trace_sink.h"
#include "replay/record/run_reader.h"

namespace areal::analyse {

struct StateLine {
  NodeId node;
  SlotId slot;
  Digest128 digest;
};
struct StreamLine {
  std::uint32_t stream = 0;
  std::string name;
};
using TraceLine = std::variant<port::TraceEvent, StateLine, StreamLine, port::Decision>;

// Equal in everything that is part of the run's digest.
bool same_line(const TraceLine& left, const TraceLine& right);

// Reads block after block, from one of them to the end. The reader must outlive it.
class LineStream {
 public:
  LineStream(const record::RunReader& reader, std::size_t first_block) : reader_(&reader), next_block_(first_block) {
    if (first_block == 0) walk_.emplace();
  }

  // The next line, good until the next call; null at the end.
  Result<const TraceLine*> next();

 private:
  const record::RunReader* reader_;
  std::size_t next_block_;
  std::vector<TraceLine> lines_;
  std::size_t next_line_ = 0;
  std::optional<port::TraceDigest> walk_;  // Checks the chain, if it has heard all from the beginning.
};

}  // namespace areal::analyse
