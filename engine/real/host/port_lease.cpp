#include "engine/real/host/port_lease.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>

namespace areal::host {
namespace {

// Nothing if the name is taken.
Result<std::optional<Descriptor>> bind_name(std::uint16_t port) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno_error("socket of a lease");
  const std::string name = lease_name(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  // Every byte of the length is part of an abstract name, so zeros at the end would make it another one.
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    return std::optional(std::move(socket));
  }
  if (errno == EADDRINUSE) return std::optional<Descriptor>();
  return errno_error("bind of a lease");
}

// Without SO_REUSEADDR: an address that somebody may still use is not free.
bool can_bind(int type, std::uint16_t port) {
  const Descriptor both(::socket(AF_INET6, type | SOCK_CLOEXEC, 0));
  if (both.is_open()) {
    constexpr int kOff = 0;  // Any IPv4 address as well.
    ::setsockopt(both.number(), IPPROTO_IPV6, IPV6_V6ONLY, &kOff, sizeof kOff);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    if (::bind(both.number(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0) return true;
    if (errno != EADDRNOTAVAIL) return false;  // Which a machine without IPv6 addresses says.
  }
  const Descriptor old(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  return old.is_open() && ::bind(old.number(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
}

}  // namespace

std::string lease_name(std::uint16_t port) { return fmt::format("areal-port-reservation-v1-{}", port); }

Result<std::vector<std::uint16_t>> PortLeases::lease(std::size_t count, std::uint16_t first) {
  if (count == 0 || count > kPorts) return Error{Errc::kInvalid, fmt::format("{} ports cannot be leased", count)};
  if (first < kFirstPort || first > kLastPort)
    return Error{Errc::kInvalid, fmt::format("port {} is no candidate", first)};
  const std::size_t rounds = std::min<std::size_t>(std::max<std::size_t>(10, 10 * count), kPorts);
  std::vector<Lease> taken;
  for (std::size_t i = 0; i < rounds && taken.size() < count; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + (first - kFirstPort + i) % kPorts);
    auto bound = bind_name(port);
    if (!bound) return bound.error();
    auto& socket = *bound;
    if (!socket) continue;
    // A process that knows nothing of leases may have the port.
    if (can_bind(SOCK_STREAM, port) && can_bind(SOCK_DGRAM, port)) taken.push_back({port, std::move(*socket)});
  }
  if (taken.size() < count) {
    return Error{Errc::kInvalid,
                 fmt::format("{} of {} ports are free among {} from {} on", taken.size(), count, rounds, first)};
  }
  std::vector<std::uint16_t> ports;
  for (Lease& lease : taken) {
    ports.push_back(lease.port);
    leases_.push_back(std::move(lease));
  }
  std::ranges::stable_sort(ports);
  return ports;
}

void PortLeases::release(std::uint16_t port) {
  std::erase_if(leases_, [port](const Lease& lease) { return lease.port == port; });
}

bool PortLeases::holds(std::uint16_t port) const {
  return std::ranges::find(leases_, port, &Lease::port) != leases_.end();
}

}  // namespace areal::host
