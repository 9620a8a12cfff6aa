#include "engine/real/accel/local_address.h"

#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace areal::accel {
namespace {

bool can_bind(const addrinfo& address) {
  const int socket_fd = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (socket_fd < 0) return false;
  const bool bound = bind(socket_fd, address.ai_addr, address.ai_addrlen) == 0;
  close(socket_fd);
  return bound;
}

}  // namespace

bool can_listen_at(const std::string& hostname) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(hostname.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (can_bind(*address)) return true;
  }
  return false;
}

bool has_interface(const std::string& name) { return if_nametoindex(name.c_str()) != 0; }

}  // namespace areal::accel
