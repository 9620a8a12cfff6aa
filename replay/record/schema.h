// The tables of a recording, their version, and how older versions become this one.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "replay/record/database.h"

namespace areal::record {

inline constexpr std::int64_t kSchemaVersion = 2;
// The application_id of a file says whether it was finished. No byte of the two is equal, so no single damaged byte
// turns one into the other.
inline constexpr std::int64_t kOpenId = 0x4F50454E;      // "OPEN"
inline constexpr std::int64_t kCompleteId = 0x41524543;  // "AREC"

enum class TableId : std::uint8_t {
  kRun,
  kNode,
  kStream,
  kDecision,
  kEvent,
  kEventBlock,
  kFault,
  kWeightVersion,
  kAnchor,
  kTransfer,
  kPortLease,
  kReceipt,
  kRequest,
  kComm,
  kCollective,
  kViolation,
  kSnapshot,
  kBlob,
  kScenario
};
inline constexpr std::size_t kTableCount = 19;

struct TableInfo {
  std::string_view name;
  std::string_view columns;  // As SQL; the first is the rowid.
  int width = 0;
};

// By TableId.
std::span<const TableInfo, kTableCount> tables();
std::string create_sql(const TableInfo& table);
std::string insert_sql(const TableInfo& table);

// One step from version `from` to `from` + 1.
struct Migration {
  std::int64_t from = 0;
  std::string_view sql;
};
std::span<const Migration> migrations();

// Brings a copy in memory from `version` to `target`, setting its user_version. Fails with kUnsupported if a step is
// missing.
Status migrate(Database& copy, std::int64_t version, std::int64_t target, std::span<const Migration> steps);

}  // namespace areal::record
