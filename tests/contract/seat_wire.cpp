#include "tests/contract/seat_wire.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <type_traits>

#include "engine/base/check.h"

namespace areal::test {
namespace {

static_assert(std::is_trivially_copyable_v<SeatPacket>);

host::Descriptor make_socket() {
  host::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  AREAL_CHECK(socket.is_open());
  return socket;
}

sockaddr_un address_of(const std::filesystem::path& place) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = place.string();
  AREAL_CHECK(name.size() < sizeof address.sun_path);
  std::ranges::copy(name, address.sun_path);
  return address;
}

}  // namespace

SeatSocket SeatSocket::connect(const std::filesystem::path& place) {
  host::Descriptor socket = make_socket();
  const sockaddr_un address = address_of(place);
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return SeatSocket(std::move(socket));
}

bool SeatSocket::send(const SeatPacket& packet) const {
  return ::send(descriptor_.number(), &packet, sizeof packet, MSG_NOSIGNAL) == sizeof packet;
}

std::optional<SeatPacket> SeatSocket::receive() const {
  SeatPacket packet;
  ssize_t got = -1;
  do {
    got = ::recv(descriptor_.number(), &packet, sizeof packet, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof packet) return std::nullopt;
  return packet;
}

SeatListener::SeatListener(const std::filesystem::path& place) : descriptor_(make_socket()) {
  const sockaddr_un address = address_of(place);
  AREAL_CHECK(::bind(descriptor_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  AREAL_CHECK(::listen(descriptor_.number(), SOMAXCONN) == 0);
}

SeatSocket SeatListener::accept() const {
  return SeatSocket(host::Descriptor(::accept4(descriptor_.number(), nullptr, nullptr, SOCK_CLOEXEC)));
}

}  // namespace areal::test
