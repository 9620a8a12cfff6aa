// Where the processes of a run listen: a book that links ask, and one made of files in the run's folder.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace areal::host {

struct PeerAddress {
  std::string address;  // Numeric, IPv4 or IPv6.
  std::uint16_t port = 0;
  Incarnation incarnation = 0;
  bool operator==(const PeerAddress&) const = default;
};

// What it says is a hint: the handshake proves who answers there. Not thread-safe.
class AddressBook {
 public:
  virtual ~AddressBook() = default;
  // Nothing if the node is not known to listen. Asked before every connection, so it answers at once.
  virtual std::optional<PeerAddress> find(NodeId node) = 0;
};

// One file a node, `<directory>/nodes/<node>.addr`: one line of address, port and incarnation. Files are replaced as a
// whole, so a reader sees the old line or the new one. Several processes may use one folder.
class RunDirectory : public AddressBook {
 public:
  explicit RunDirectory(std::string directory) : directory_(std::move(directory)) {}

  // Makes the folder if need be. kIo: it cannot be written.
  Status publish(NodeId node, const PeerAddress& address);
  // No error if there is nothing.
  Status withdraw(NodeId node);
  // A file that cannot be read or is not such a line counts as none.
  std::optional<PeerAddress> find(NodeId node) override;

 private:
  [[nodiscard]] std::string path(NodeId node) const;
  std::string directory_;
};

}  // namespace areal::host
