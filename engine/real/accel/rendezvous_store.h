// Where members of a group find each other: small values by name, written once.
//
// FolderStore serves the processes of one machine. Between machines a store over TCP takes its place behind the same
// interface; nothing else of this folder knows about files.
//
// A group that was aborted before all had met is closed for good: whoever waits there or comes later sees it.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace areal::accel {

// No call blocks. Any number of processes may use one store; any thread may call an object's const functions.
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  // False if `key` has a value already, or cannot be written.
  virtual bool put(const std::string& key, std::span<const char> value) = 0;
  [[nodiscard]] virtual std::optional<std::vector<char>> get(const std::string& key) const = 0;
  [[nodiscard]] virtual bool has(const std::string& key) const = 0;
  // Also forgets the store once nobody has a value in it, unless it is closed.
  virtual void erase(const std::string& key) = 0;
  // If anybody is there, says to all that nobody will meet here.
  virtual void close() = 0;
  [[nodiscard]] virtual bool is_closed() const = 0;
};

// Files of one folder, which exists as long as there is a value, or for good once it is closed. A value appears whole
// or not at all.
class FolderStore : public RendezvousStore {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  bool put(const std::string& key, std::span<const char> value) override;
  [[nodiscard]] std::optional<std::vector<char>> get(const std::string& key) const override;
  [[nodiscard]] bool has(const std::string& key) const override;
  void erase(const std::string& key) override;
  void close() override;
  [[nodiscard]] bool is_closed() const override;

 private:
  std::filesystem::path folder_;
};

}  // namespace areal::accel
