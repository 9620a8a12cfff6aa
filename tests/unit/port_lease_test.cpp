// Leases of ports hold between processes, end with them, and never name a port that somebody else has.
#include "engine/real/host/port_lease.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace areal::host {
namespace {

// Somewhere else for each run of the tests, as several may run at once.
std::uint16_t some_port(std::uint32_t salt) {
  return static_cast<std::uint16_t>(kFirstPort + (static_cast<std::uint32_t>(::getpid()) * 37 + salt * 4001) % kPorts);
}

std::uint16_t next_port(std::uint16_t port) {
  return port == kLastPort ? kFirstPort : static_cast<std::uint16_t>(port + 1);
}

// The first port of a lease, or 0.
std::uint16_t lease_one(PortLeases& leases, std::uint16_t first) {
  const auto ports = leases.lease(1, first);
  return ports ? ports->front() : std::uint16_t{0};
}

Descriptor bind_port(int type, std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) socket.close();
  return socket;
}

// A process that leases `count` ports, tells them and waits to be killed.
class Holder {
 public:
  Holder(std::size_t count, std::uint16_t first) : ports_(count) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    const Descriptor read(ends[0]);
    Descriptor write(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      PortLeases leases;
      const auto ports = leases.lease(count, first);
      if (!ports || ::write(write.number(), ports->data(), count * 2) < 0) ::_exit(1);
      while (true) ::pause();
    }
    write.close();
    if (::read(read.number(), ports_.data(), count * 2) != static_cast<ssize_t>(count * 2)) ports_.clear();
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] const std::vector<std::uint16_t>& ports() const { return ports_; }

 private:
  pid_t pid_ = 0;
  std::vector<std::uint16_t> ports_;
};

// Two guards, one first candidate (TC-GP-08).
TEST(PortLeases, TwoProcessesNeverGetOnePort) {
  const std::uint16_t first = some_port(1);
  const Holder other(20, first);
  ASSERT_EQ(other.ports().size(), 20U);
  EXPECT_TRUE(std::ranges::is_sorted(other.ports()));
  PortLeases leases;
  const auto mine = leases.lease(20, first);
  ASSERT_TRUE(mine.has_value());
  for (const std::uint16_t port : *mine) EXPECT_EQ(std::ranges::count(other.ports(), port), 0) << port;
}

TEST(PortLeases, ALeaseEndsWithItsProcess) {
  const std::uint16_t first = some_port(2);
  Holder other(1, first);
  ASSERT_EQ(other.ports().size(), 1U);
  const std::uint16_t port = other.ports().front();
  PortLeases leases;
  EXPECT_NE(lease_one(leases, port), port);
  other.kill();
  EXPECT_EQ(lease_one(leases, port), port);
}

TEST(PortLeases, AReleasedPortCanBeLeasedAgain) {
  PortLeases leases;
  const std::uint16_t port = lease_one(leases, some_port(3));
  ASSERT_NE(port, 0);
  EXPECT_TRUE(leases.holds(port));
  EXPECT_NE(lease_one(leases, port), port);
  leases.release(port);
  EXPECT_FALSE(leases.holds(port));
  EXPECT_EQ(leases.size(), 1U);
  EXPECT_EQ(lease_one(leases, port), port);
}

// The same name is used by other programs of the machine, byte for byte.
TEST(PortLeases, TheNameIsTheAgreedOne) {
  PortLeases leases;
  const std::uint16_t port = lease_one(leases, some_port(4));
  ASSERT_NE(port, 0);
  std::string name(1, '\0');
  name += "areal-port-reservation-v1-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  const auto length = static_cast<socklen_t>(sizeof address.sun_family + name.size());
  EXPECT_NE(::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  leases.release(port);
  EXPECT_EQ(::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), length), 0);
}

// A process that knows no leases may hold TCP alone, UDP alone, and on one interface alone.
TEST(PortLeases, APortInUseIsNotLeased) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    PortLeases leases;
    const std::uint16_t port = lease_one(leases, some_port(type == SOCK_STREAM ? 5 : 6));
    ASSERT_NE(port, 0);
    leases.release(port);
    const Descriptor foreign = bind_port(type, port);
    ASSERT_TRUE(foreign.is_open());
    const std::uint16_t other = lease_one(leases, port);
    EXPECT_NE(other, port);
    EXPECT_NE(other, 0);
    EXPECT_FALSE(leases.holds(port));
  }
}

TEST(PortLeases, AShortageLeasesNothing) {
  PortLeases blocker;
  const std::uint16_t first = some_port(7);
  std::uint16_t port = first;
  for (int i = 0; i < 10; ++i, port = next_port(port)) (void)blocker.lease(1, port);
  PortLeases leases;
  const auto none = leases.lease(1, first);
  ASSERT_FALSE(none.has_value());  // All ten candidates are taken, by the blocker or by somebody else.
  EXPECT_EQ(none.error().code, Errc::kInvalid);
  EXPECT_EQ(leases.size(), 0U);
  EXPECT_TRUE(leases.lease(2, first).has_value());  // Twenty candidates.
  EXPECT_EQ(leases.size(), 2U);
  EXPECT_EQ(leases.lease(0, first).error().code, Errc::kInvalid);
  EXPECT_EQ(leases.lease(kPorts + 1, first).error().code, Errc::kInvalid);
  EXPECT_EQ(leases.lease(1, kFirstPort - 1).error().code, Errc::kInvalid);
  EXPECT_EQ(leases.lease(1, kLastPort + 1).error().code, Errc::kInvalid);
}

TEST(PortLeases, AfterTheLastPortComesTheFirst) {
  PortLeases leases;
  const auto ports = leases.lease(8, kLastPort);
  ASSERT_TRUE(ports.has_value());
  EXPECT_LE(std::ranges::count(*ports, kLastPort), 1);
  for (const std::uint16_t port : *ports) EXPECT_TRUE(port == kLastPort || port < kFirstPort + 80) << port;
}

}  // namespace
}  // namespace areal::host
