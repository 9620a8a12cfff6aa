// What all processes of one real run must agree on, as a file in the run's folder.
//
// `run.txt`: one `key value` a line. The scenario lies beside it as `scenario.yaml`, the secret as `secret`.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/time.h"

namespace areal::real {

struct RunPaper {
  std::uint64_t run = 0;  // Id of the run: in every handshake.
  std::uint64_t seed = 0;
  Instant epoch{};  // Of the machine's monotonic clock: zero of the run's time.
  std::string address = "127.0.0.1";
};

// kIo: cannot be written or read; kInvalid: a line that is none of these.
Status write_paper(const std::filesystem::path& folder, const RunPaper& paper);
Result<RunPaper> read_paper(const std::filesystem::path& folder);

// Files of the run's folder.
std::filesystem::path scenario_file(const std::filesystem::path& folder);
std::filesystem::path secret_file(const std::filesystem::path& folder);
std::filesystem::path recording_file(const std::filesystem::path& folder, const std::string& node,
                                     std::uint32_t incarnation);
std::filesystem::path pid_file(const std::filesystem::path& folder, NodeId node);
std::filesystem::path log_file(const std::filesystem::path& folder, const std::string& node);

}  // namespace areal::real
