#include "replay/record/schema.h"

#include <algorithm>
#include <array>

namespace areal::record {

namespace {

constexpr std::array<TableInfo, kTableCount> kTables{{
    {"run", "id INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL", 3},
    {"node",
     "id INTEGER PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, host INTEGER NOT NULL, slots TEXT NOT NULL", 5},
    {"stream", "id INTEGER PRIMARY KEY, name TEXT NOT NULL", 2},
    {"decision",
     "id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, ordinal INTEGER NOT NULL, bound INTEGER NOT NULL, "
     "chosen INTEGER NOT NULL, after_seq INTEGER NOT NULL",
     6},
    {"event",
     "seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, node TEXT NOT NULL, kind TEXT NOT NULL, cause INTEGER NOT NULL, "
     "text TEXT NOT NULL",
     6},
    {"event_block",
     "id INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, first_ns INTEGER NOT NULL, "
     "events INTEGER NOT NULL, lines INTEGER NOT NULL, chain TEXT NOT NULL, raw_bytes INTEGER NOT NULL, body BLOB NOT "
     "NULL",
     9},
    {"fault",
     "seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, node TEXT NOT NULL, kind TEXT NOT NULL, cause INTEGER NOT NULL, "
     "text TEXT NOT NULL",
     6},
    {"weight_version",
     "seq INTEGER PRIMARY KEY, node TEXT NOT NULL, version INTEGER NOT NULL, epoch INTEGER NOT NULL, "
     "attempt INTEGER NOT NULL, mode TEXT NOT NULL, reason TEXT NOT NULL, bytes INTEGER NOT NULL, "
     "published_ns INTEGER NOT NULL",
     9},
    {"anchor",
     "seq INTEGER PRIMARY KEY, node TEXT NOT NULL, epoch INTEGER NOT NULL, version INTEGER NOT NULL, "
     "attempt INTEGER NOT NULL, reason TEXT NOT NULL, at_ns INTEGER NOT NULL",
     7},
    {"transfer",
     "seq INTEGER PRIMARY KEY, node TEXT NOT NULL, epoch INTEGER NOT NULL, version INTEGER NOT NULL, "
     "attempt INTEGER NOT NULL, mode TEXT, reason TEXT, outcome TEXT, peer TEXT, started_ns INTEGER, ended_ns INTEGER, "
     "ended_seq INTEGER",
     12},
    {"port_lease",
     "seq INTEGER PRIMARY KEY, host INTEGER NOT NULL, port INTEGER NOT NULL, holder TEXT, incarnation INTEGER NOT "
     "NULL, "
     "leased_ns INTEGER, bound_ns INTEGER, released_ns INTEGER",
     8},
    {"receipt",
     "seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, node TEXT NOT NULL, kind TEXT NOT NULL, subject INTEGER NOT "
     "NULL, "
     "role TEXT NOT NULL, count INTEGER NOT NULL, holders INTEGER NOT NULL, digest TEXT NOT NULL",
     9},
    {"request",
     "seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, node TEXT NOT NULL, sample INTEGER NOT NULL, "
     "engine INTEGER NOT NULL, pinned INTEGER NOT NULL, label INTEGER NOT NULL, tokens INTEGER NOT NULL, "
     "ending TEXT NOT NULL, digest TEXT NOT NULL",
     10},
    {"comm",
     "seq INTEGER PRIMARY KEY, node TEXT NOT NULL, comm_group INTEGER NOT NULL, backend TEXT NOT NULL, "
     "rank INTEGER NOT NULL, world INTEGER NOT NULL, port INTEGER NOT NULL, outcome TEXT, asked_ns INTEGER NOT NULL, "
     "joined_ns INTEGER",
     10},
    {"collective",
     "seq INTEGER PRIMARY KEY, node TEXT NOT NULL, comm_group INTEGER NOT NULL, batch INTEGER NOT NULL, kind TEXT NOT "
     "NULL, "
     "tag INTEGER NOT NULL, version INTEGER NOT NULL, value INTEGER NOT NULL, count INTEGER NOT NULL, outcome TEXT, "
     "peer TEXT, result_value INTEGER, result_count INTEGER, posted_ns INTEGER NOT NULL, done_ns INTEGER",
     15},
    {"violation",
     "id INTEGER PRIMARY KEY, invariant TEXT NOT NULL, verdict TEXT NOT NULL, seq INTEGER NOT NULL, node TEXT NOT "
     "NULL, "
     "message TEXT NOT NULL",
     6},
    {"snapshot", "seq INTEGER PRIMARY KEY, words INTEGER NOT NULL, digest TEXT NOT NULL, blob INTEGER NOT NULL", 4},
    {"blob", "id INTEGER PRIMARY KEY, kind TEXT NOT NULL, raw_bytes INTEGER NOT NULL, body BLOB NOT NULL", 4},
    {"scenario", "id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL", 3},
}};

// Version 2 packs blocks otherwise and chains otherwise; its tables are those of version 1. RunReader reads both.
constexpr std::array<Migration, 1> kMigrations{{{.from = 1, .sql = ""}}};

}  // namespace

std::span<const TableInfo, kTableCount> tables() { return kTables; }

std::string create_sql(const TableInfo& table) {
  return "CREATE TABLE " + std::string(table.name) + " (" + std::string(table.columns) + ") STRICT";
}

std::string insert_sql(const TableInfo& table) {
  std::string sql = "INSERT INTO " + std::string(table.name) + " VALUES (?";
  for (int i = 1; i < table.width; ++i) sql += ", ?";
  return sql + ")";
}

std::span<const Migration> migrations() { return kMigrations; }

Status migrate(Database& copy, std::int64_t version, std::int64_t target, std::span<const Migration> steps) {
  for (; version < target; ++version) {
    const auto found = std::ranges::find(steps, version, &Migration::from);
    if (found == steps.end()) {
      return Error{Errc::kUnsupported, "no way from recording version " + std::to_string(version) + " to the next"};
    }
    AREAL_TRY(copy.run("BEGIN;" + std::string(found->sql) + ";PRAGMA user_version=" + std::to_string(version + 1) +
                       ";COMMIT"));
  }
  return Unit{};
}

}  // namespace areal::record
