// A file that is replaced as a whole or not at all, and is on stable storage once its commit ended.
//
// Bytes go to "PATH.new", which is synced, renamed to PATH and made durable by a sync of the folder. Whoever dies in
// between leaves the file before it and at most one ".new", which the next writer takes over.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/real/host/descriptor.h"

namespace areal::host {

// All errors are kIo. Calls block until the disk has done its part. Not thread-safe.
class DurableFile {
 public:
  // Readable by its owner alone. An error if somebody else is writing the same file now: two writers never mix.
  static Result<DurableFile> create(const std::filesystem::path& path);
  DurableFile(DurableFile&& other) noexcept = default;
  DurableFile& operator=(DurableFile&&) = delete;
  // What was not committed is thrown away.
  ~DurableFile();

  Status append(std::span<const std::uint8_t> bytes);
  // After an error the old file is there or the new one, whole in both cases.
  // REQUIRES: called once, after everything was appended.
  Status commit();

 private:
  DurableFile(std::filesystem::path path, std::filesystem::path temporary, Descriptor file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor file_;  // Closed once the file has its name.
};

// In one go.
Status replace_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

// The whole file; nothing if there is none. kIo, also for a file of more than `limit` bytes.
Result<std::optional<std::vector<std::uint8_t>>> read_file(const std::filesystem::path& path, std::size_t limit);

// Reads until `bytes` is full or the file ends; how many were read.
Result<std::size_t> read_up_to(int file, std::span<std::uint8_t> bytes);

}  // namespace areal::host
