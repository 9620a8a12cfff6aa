// Leases of TCP and UDP ports that hold among all processes of a machine and vanish with their process.
//
// A lease is an abstract-namespace UNIX socket named after the port, bound and kept open: a second bind of the name
// fails, and the kernel closes it however its process dies (spec/transfer.md 5.2). It holds within one network
// namespace. Children do not inherit it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/real/host/descriptor.h"

namespace areal::host {

inline constexpr std::uint16_t kFirstPort = 10000;
inline constexpr std::uint16_t kLastPort = 32767;  // Below the range from which Linux gives out ports by itself.
inline constexpr std::uint64_t kPorts = kLastPort - kFirstPort + 1;

// The name of a lease's socket, without the leading zero byte.
std::string lease_name(std::uint16_t port);

// INVARIANT: each port that is held has its socket bound and open. Not thread-safe.
class PortLeases {
 public:
  // `count` ports, ascending, that nobody has leased and on which TCP and UDP can be bound on all interfaces. Looks at
  // max(10, 10 count) candidates at most, one after the other from `first` on; after the last port comes the first.
  //
  // kInvalid: `count` is 0, `first` is out of range or too few candidates are free. kIo: no sockets. After an error
  // nothing more is leased than before.
  Result<std::vector<std::uint16_t>> lease(std::size_t count, std::uint16_t first);

  // REQUIRES: who was told of the port is confirmed dead. What is not held is left alone.
  void release(std::uint16_t port);
  [[nodiscard]] bool holds(std::uint16_t port) const;
  [[nodiscard]] std::size_t size() const { return leases_.size(); }

 private:
  struct Lease {
    std::uint16_t port = 0;
    Descriptor socket;
  };

  std::vector<Lease> leases_;
};

}  // namespace areal::host
