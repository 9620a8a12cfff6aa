// What a run came to, without when: versions, anchors, receipts, port leases and updates.
//
// Two runs of one history differ at most in times, event numbers, bytes, digests, how many events they took, and which
// ports were drawn. It is read from the lines, so a truncated recording has the history of what it holds.
// Plain values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/port/types.h"
#include "replay/record/run_reader.h"

namespace areal::analyse {

// Words of enums are those of the recording, so recordings of programs that number them otherwise compare well.
struct PublishedRow {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::string mode;
  std::string reason;
  bool operator==(const PublishedRow&) const = default;
};
struct AnchorRow {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::string reason;
  bool operator==(const AnchorRow&) const = default;
};
struct ReceiptRow {
  std::string kind;
  std::uint64_t subject = 0;  // Version, or training batch.
  std::string role;
  std::uint64_t count = 0;
  std::uint64_t holders = 0;
  bool operator==(const ReceiptRow&) const = default;
};
// From the first state of a port to its release, or to the next lease of the same port.
struct LeaseRow {
  HostId host;
  std::string holder;           // Name of the node; "-" if none was ever told.
  Incarnation incarnation = 0;  // 0 until it is bound, where the port is leased before the process is started.
  std::uint64_t port = 0;       // The host's ports are numbered from 1 in the order in which they appear in these rows.
  std::vector<std::string> states;
  bool operator==(const LeaseRow&) const = default;
};
struct UpdateRow {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  std::string mode;  // "-" where an end has no start; so is reason.
  std::string reason;
  std::string outcome;  // Empty: it never ended.
  bool operator==(const UpdateRow&) const = default;
};

// Rows of equal keys stand in the order in which they happened, receipts by what they say.
struct History {
  std::vector<PublishedRow> published;  // By version, epoch, attempt.
  std::vector<AnchorRow> anchors;       // By version, epoch, attempt.
  std::vector<ReceiptRow> receipts;     // By kind, subject, role, count, holders.
  std::vector<LeaseRow> leases;         // By host, holder.
  std::vector<UpdateRow> updates;       // By version, attempt, epoch.
  bool operator==(const History&) const = default;
};

// Reads every line once. kCorrupt as RunReader::read_all().
Result<History> read_history(const record::RunReader& reader);

}  // namespace areal::analyse
