// What tests of links share: nodes on one loop, and a raw socket that says whatever a test wants.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/real/host/links.h"

namespace areal::host {

using Bytes = std::vector<std::uint8_t>;

// Addresses in memory.
class TestBook : public AddressBook {
 public:
  std::optional<PeerAddress> find(NodeId node) override {
    const auto found = addresses.find(node);
    return found == addresses.end() ? std::nullopt : std::optional(found->second);
  }
  std::map<NodeId, PeerAddress> addresses;
};

// A blocking client or accepted connection without any protocol.
class RawSocket {
 public:
  explicit RawSocket(int number) : number_(number) {}
  RawSocket(RawSocket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() {
    if (number_ >= 0) ::close(number_);
  }
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static RawSocket connect(std::uint16_t port) {
    RawSocket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(made.number_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return made;
  }
  // Listens on a free port.
  static RawSocket listen(std::uint16_t& port) {
    RawSocket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    EXPECT_EQ(::bind(made.number_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(made.number_, 16), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(made.number_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    return made;
  }
  // REQUIRES: somebody has connected or is about to.
  [[nodiscard]] RawSocket accept() const { return RawSocket(::accept(number_, nullptr, nullptr)); }
  void say(std::span<const std::uint8_t> bytes) const {
    // The other end may have closed already, which is what some tests want.
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t sent = ::send(number_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return;
      done += static_cast<std::size_t>(sent);
    }
  }
  // What has arrived; empty if nothing has.
  [[nodiscard]] Bytes hear() const {
    Bytes bytes(4096);
    const ssize_t got = ::recv(number_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  [[nodiscard]] bool is_closed_by_peer() const {
    std::uint8_t byte = 0;
    const ssize_t got = ::recv(number_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  int number_;
};

struct Received {
  Identity from{};
  Bytes bytes;
  bool operator==(const Received&) const = default;
};

// One process's links, with what they received and reported.
struct Station {
  std::vector<Received> received;
  std::vector<LinkReport> reports;
  bool takes_messages = true;
  std::unique_ptr<Links> links;
};

class LinksTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRun = 9;

  static Bytes secret_bytes(std::uint8_t value = 0x5A) { return Bytes(32, value); }
  static Bytes text(std::string_view words) { return {words.begin(), words.end()}; }

  static LinksOptions options_of(Identity self) {
    LinksOptions options;
    options.self = self;
    options.run = kRun;
    options.pause_first = 1_ms;
    options.pause_longest = 20_ms;
    return options;
  }
  std::unique_ptr<Station> make_station(const LinksOptions& options, std::uint8_t secret = 0x5A) {
    auto station = std::make_unique<Station>();
    Station* const at = station.get();
    LinkHandlers handlers{.on_message =
                              [at](const Identity& from, std::span<const std::uint8_t> bytes) {
                                at->received.push_back({from, {bytes.begin(), bytes.end()}});
                                return at->takes_messages;
                              },
                          .on_report = [at](const LinkReport& report) { at->reports.push_back(report); }};
    auto links = Links::open(*loop_, book_, Secret(secret_bytes(secret)), options, std::move(handlers));
    EXPECT_TRUE(links.has_value());
    station->links = std::move(links).value();
    book_.addresses[options.self.node] = {"127.0.0.1", station->links->port(), options.self.incarnation};
    return station;
  }
  std::unique_ptr<Station> make_station(Identity self) { return make_station(options_of(self)); }

  // Runs the loop until `holds`; false if it does not within ten seconds.
  bool run_until(const std::function<bool()>& holds) {
    const Instant end = loop_->now() + 10_s;
    std::function<void()> look = [&] {
      if (holds() || loop_->now() > end) {
        loop_->stop();
      } else {
        loop_->arm(200_us, look);
      }
    };
    loop_->post(look);
    loop_->run();
    return holds();
  }
  void run_for(Duration time) {
    loop_->arm(time, [this] { loop_->stop(); });
    loop_->run();
  }

  // Talks as a member of the run that a test has in its hands, up to the end of the handshake.
  struct Member {
    RawSocket socket;
    Channel channel;
    Bytes said;
    Bytes heard;
  };
  Member call(const Station& station, Identity self, Identity called, std::uint64_t nonce) {
    const HandshakeSetup setup{.run = kRun, .self = self, .called = called, .nonce = {nonce, 2, 3, 4}};
    Member member{RawSocket::connect(station.links->port()), Channel(setup, MacKey(secret_bytes())), {}, {}};
    member.channel.start(member.said);
    member.socket.say(member.said);
    EXPECT_TRUE(run_until([&] {
      const Bytes heard = member.socket.hear();
      member.heard.insert(member.heard.end(), heard.begin(), heard.end());
      Bytes reply;
      for (std::span<const std::uint8_t> rest = heard; !rest.empty();) {
        if (member.channel.feed(rest, reply) == ChannelEvent::kRefused) return true;
      }
      member.socket.say(reply);
      member.said.insert(member.said.end(), reply.begin(), reply.end());
      return member.channel.is_open();
    }));
    return member;
  }

  TestBook book_;
  std::unique_ptr<Loop> loop_ = Loop::create().value();
};

}  // namespace areal::host
