// The store in files: durable values of 16 bytes by key, with compare-and-set between processes.
//
// One file a value, named by its key, with a digest over key and value inside. A value that was put is there after the
// death of its writer at any moment, and after a loss of power once the put ended. A reader waits for a put under way.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/base/time.h"
#include "engine/port/types.h"
#include "engine/real/host/descriptor.h"

namespace areal::host {

// kOk; kMismatch: put_if() found another value; kRefused: get() found none; kTimedOut: others held the store for too
// long; kFailed: files cannot be used, or what is there is damaged. After a put that failed the key has its old value
// or the new one.
struct StoreAnswer {
  port::Outcome outcome = port::Outcome::kOk;
  Digest128 value{};   // What was put (kOk) or found (kOk, kMismatch).
  std::string reason;  // For people: of kTimedOut and kFailed.
};

// Any number of processes may use one folder, and any number of threads one object. Calls block: for the disk, and for
// others as long as `patience`.
class FileStore {
 public:
  // Makes the folder if it is not there, for its owner alone.
  static Result<FileStore> open(const std::filesystem::path& folder, Duration patience = 10_s);

  // Writes `value` under `key` if the present value is `expected` (all zero: absent).
  [[nodiscard]] StoreAnswer put_if(std::uint64_t key, const Digest128& expected, const Digest128& value) const;
  [[nodiscard]] StoreAnswer get(std::uint64_t key) const;

 private:
  FileStore(std::filesystem::path folder, Duration patience) : folder_(std::move(folder)), patience_(patience) {}
  // Held until it is closed. A file description of its own for each call: so threads keep each other out as well.
  [[nodiscard]] Result<Descriptor> lock(int how) const;
  // kRefused if there is none.
  [[nodiscard]] StoreAnswer read(std::uint64_t key) const;
  [[nodiscard]] std::filesystem::path file_of(std::uint64_t key) const;

  std::filesystem::path folder_;
  Duration patience_;
};

}  // namespace areal::host
