// Links carry messages between members of a run, whatever slow peers and lost connections do.
#include "engine/real/host/links.h"

#include <thread>

#include "engine/real/host/message_codec.h"
#include "tests/unit/links_fixture.h"

namespace areal::host {
namespace {

constexpr Identity kAnn{{1}, 1};
constexpr Identity kBob{{2}, 1};
constexpr Identity kCat{{3}, 1};

TEST_F(LinksTest, MessagesArriveInOrderBothWays) {
  const auto ann = make_station(kAnn);
  const auto bob = make_station(kBob);
  constexpr std::size_t kMessages = 2000;
  for (std::size_t i = 0; i < kMessages; ++i) {
    ann->links->send(kBob.node, text("to bob " + std::to_string(i)));
    bob->links->send(kAnn.node, text("to ann " + std::to_string(i)));
  }
  ASSERT_TRUE(run_until([&] { return ann->received.size() == kMessages && bob->received.size() == kMessages; }));
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(bob->received[i], (Received{kAnn, text("to bob " + std::to_string(i))}));
    ASSERT_EQ(ann->received[i], (Received{kBob, text("to ann " + std::to_string(i))}));
  }
  EXPECT_TRUE(ann->reports.empty());
  EXPECT_TRUE(bob->reports.empty());
  EXPECT_EQ(ann->links->counts().sent, kMessages);
  EXPECT_EQ(bob->links->counts().received, kMessages);
  EXPECT_EQ(ann->links->counts().opened, 2U);
  EXPECT_EQ(ann->links->strangers(), 0U);
}

TEST_F(LinksTest, AWholeMessageOfAProtocolComesThrough) {
  const auto ann = make_station(kAnn);
  const auto bob = make_station(kBob);
  WireMessage message{.from = kAnn.node, .from_incarnation = 1, .from_slot = {2}, .seq = 3, .lamport = 4};
  message.send = {.to = kBob.node, .to_slot = {5}, .kind = port::MessageKind::kReply, .request = {6}};
  message.send.body = to_record(port::TimerFired{{7}});
  ann->links->send(kBob.node, encode_message(message));
  ASSERT_TRUE(run_until([&] { return bob->received.size() == 1; }));
  const auto back = decode_message(bob->received[0].bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->send.body, message.send.body);
  EXPECT_EQ(back->seq, 3U);
}

TEST_F(LinksTest, LongestMessageGoesAndLongerDoesNot) {
  const auto ann = make_station(kAnn);
  const auto bob = make_station(kBob);
  ann->links->send(kBob.node, Bytes(kMaxMessageBytes + 1));
  EXPECT_EQ(ann->links->counts().of(Refusal::kTooLong), 1U);
  ann->links->send(kBob.node, Bytes(kMaxMessageBytes, 7));
  ASSERT_TRUE(run_until([&] { return !bob->received.empty(); }));
  EXPECT_EQ(bob->received[0].bytes, Bytes(kMaxMessageBytes, 7));
}

TEST_F(LinksTest, ANodeMayWriteToItself) {
  const auto ann = make_station(kAnn);
  ann->links->send(kAnn.node, text("note"));
  EXPECT_TRUE(ann->received.empty());  // Never as a nested call.
  ASSERT_TRUE(run_until([&] { return !ann->received.empty(); }));
  EXPECT_EQ(ann->received[0], (Received{kAnn, text("note")}));
}

TEST_F(LinksTest, OtherThreadsPostToTheLoop) {
  const auto ann = make_station(kAnn);
  const auto bob = make_station(kBob);
  std::thread worker([&] {
    for (int i = 0; i < 500; ++i) {
      loop_->post([&ann, i] { ann->links->send(kBob.node, text(std::to_string(i))); });
    }
  });
  EXPECT_TRUE(run_until([&] { return bob->received.size() == 500; }));
  worker.join();
  EXPECT_EQ(bob->received.back().bytes, text("499"));
}

TEST_F(LinksTest, ABadPayloadIsCountedAndTheConnectionStays) {
  const auto ann = make_station(kAnn);
  const auto bob = make_station(kBob);
  bob->takes_messages = false;
  ann->links->send(kBob.node, text("nonsense"));
  ASSERT_TRUE(run_until([&] { return bob->links->counts().of(Refusal::kBadPayload) == 1; }));
  bob->takes_messages = true;
  ann->links->send(kBob.node, text("sense"));
  ASSERT_TRUE(run_until([&] { return bob->links->counts().received == 1; }));
  EXPECT_EQ(ann->links->counts().opened, 1U);
  ASSERT_EQ(bob->reports.size(), 1U);
  EXPECT_EQ(bob->reports[0].peer, kAnn);
  EXPECT_TRUE(bob->reports[0].is_inbound);
}

TEST_F(LinksTest, ALaterProcessOfTheNodeIsFound) {
  const auto ann = make_station(kAnn);
  auto bob = make_station(kBob);
  ann->links->send(kBob.node, text("one"));
  ASSERT_TRUE(run_until([&] { return bob->received.size() == 1; }));
  bob.reset();
  ann->links->send(kBob.node, text("lost or late"));
  run_for(30_ms);
  bob = make_station(Identity{kBob.node, 2});
  ann->links->send(kBob.node, text("two"));
  ASSERT_TRUE(run_until([&] { return !bob->received.empty() && bob->received.back().bytes == text("two"); }));
  EXPECT_EQ(ann->links->counts().opened, 2U);
}

// Whoever writes to a process that has died must not be heard by its successor, whose history is another.
TEST_F(LinksTest, MessagesToADeadProcessAreNotForTheNext) {
  const auto ann = make_station(kAnn);
  ann->links->send(kBob.node, text("to whoever comes"));
  run_for(10_ms);
  auto bob = make_station(kBob);
  ASSERT_TRUE(run_until([&] { return bob->received.size() == 1; }));
  bob.reset();
  run_for(10_ms);
  ann->links->send(kBob.node, text("to the dead"));
  run_for(30_ms);
  ann->links->send(kBob.node, text("to the dead, too"));
  bob = make_station(Identity{kBob.node, 2});
  ann->links->send(kBob.node, text("to the living"));
  ASSERT_TRUE(run_until([&] { return !bob->received.empty(); }));
  run_for(30_ms);
  ASSERT_EQ(bob->received.size(), 1U);
  EXPECT_EQ(bob->received[0].bytes, text("to the living"));
  EXPECT_EQ(ann->links->counts().of(Refusal::kPeerReplaced), 2U);
}

// It was sent when nobody was there; the first who was found, and died unheard, was the one it was for.
TEST_F(LinksTest, AMessageToWhoeverComesIsForTheFirstWhoDoes) {
  const auto ann = make_station(kAnn);
  ann->links->send(kBob.node, text("to whoever comes"));
  make_station(kBob);  // And goes at once: only its address is left.
  run_for(30_ms);
  const auto bob = make_station(Identity{kBob.node, 2});
  ASSERT_TRUE(run_until([&] { return ann->links->counts().of(Refusal::kPeerReplaced) == 1; }));
  run_for(30_ms);
  EXPECT_TRUE(bob->received.empty());
}

TEST_F(LinksTest, MessagesWaitForAPeerThatIsNotThereYet) {
  const auto ann = make_station(kAnn);
  ann->links->send(kBob.node, text("early"));
  run_for(10_ms);
  EXPECT_GE(ann->links->counts().of(Refusal::kPeerUnknown), 1U);
  const auto bob = make_station(kBob);
  ASSERT_TRUE(run_until([&] { return !bob->received.empty(); }));
  EXPECT_EQ(bob->received[0].bytes, text("early"));
}

TEST_F(LinksTest, OldMessagesExpireAndFullQueuesDropTheOldest) {
  LinksOptions options = options_of(kAnn);
  options.queue_messages = 10;
  options.message_age = 30_ms;
  const auto ann = make_station(options);
  for (int i = 0; i < 25; ++i) ann->links->send(kBob.node, text(std::to_string(i)));
  EXPECT_EQ(ann->links->counts().of(Refusal::kQueueFull), 15U);
  EXPECT_EQ(ann->links->waiting_bytes(kBob.node), 20U);  // "15" to "24".
  ASSERT_TRUE(run_until([&] { return ann->links->counts().of(Refusal::kExpired) == 10; }));
  EXPECT_EQ(ann->links->waiting_bytes(kBob.node), 0U);
}

TEST_F(LinksTest, ForgottenPeerGetsNothing) {
  const auto ann = make_station(kAnn);
  ann->links->send(kBob.node, text("to the dead"));
  ann->links->forget(kBob.node);
  const auto bob = make_station(kBob);
  run_for(50_ms);
  EXPECT_TRUE(bob->received.empty());
  ann->links->send(kBob.node, text("hello"));
  ASSERT_TRUE(run_until([&] { return !bob->received.empty(); }));
  bob->links->forget(kAnn.node);  // Closes what it accepted; the other side comes again.
  run_for(5_ms);
  ann->links->send(kBob.node, text("again"));
  ASSERT_TRUE(run_until([&] { return bob->received.back().bytes == text("again"); }));
  EXPECT_EQ(ann->links->counts().opened, 2U);
}

// Opens a handshake as a server by hand and then reads nothing more.
TEST_F(LinksTest, ASlowPeerDelaysNobodyAndHoldsBoundedMemory) {
  LinksOptions options = options_of(kAnn);
  options.queue_bytes = 1024 * 1024;
  options.stall_deadline = 300_ms;
  const auto ann = make_station(options);
  const auto bob = make_station(kBob);
  std::uint16_t port = 0;
  const RawSocket listener = RawSocket::listen(port);
  book_.addresses[kCat.node] = {"127.0.0.1", port, 1};
  constexpr std::size_t kEach = 32 * 1024;
  ann->links->send(kCat.node, Bytes(kEach));
  run_for(5_ms);
  const RawSocket slow = listener.accept();
  Channel channel({.run = kRun, .self = kCat, .nonce = {1, 2, 3, 4}}, MacKey(secret_bytes()));
  ASSERT_TRUE(run_until([&] {
    const Bytes heard = slow.hear();
    Bytes reply;
    std::span<const std::uint8_t> rest = heard;
    while (!rest.empty() && !channel.is_open()) channel.feed(rest, reply);
    slow.say(reply);
    return channel.is_open();
  }));
  for (int i = 0; i < 1000; ++i) {
    ann->links->send(kCat.node, Bytes(kEach));
    if (i % 10 == 0) run_for(100_us);
    ASSERT_LE(ann->links->waiting_bytes(kCat.node), options.queue_bytes);
  }
  EXPECT_GT(ann->links->counts().of(Refusal::kQueueFull), 100U);
  const Instant before = loop_->now();
  ann->links->send(kBob.node, text("quick"));
  ASSERT_TRUE(run_until([&] { return !bob->received.empty(); }));
  EXPECT_LT((loop_->now() - before).ns, Duration{5_s}.ns);
  ASSERT_TRUE(run_until([&] { return ann->links->counts().of(Refusal::kStalled) >= 1; }));
}

TEST_F(LinksTest, NewestConnectionOfANodeReplacesTheOlder) {
  const auto ann = make_station(kAnn);
  Member first = call(*ann, kBob, kAnn, 1);
  ASSERT_TRUE(run_until([&] { return ann->links->counts().opened == 1; }));
  Member second = call(*ann, kBob, kAnn, 2);
  ASSERT_TRUE(run_until([&] { return first.socket.is_closed_by_peer(); }));
  Bytes sealed;
  second.channel.seal(text("new"), sealed);
  second.socket.say(sealed);
  ASSERT_TRUE(run_until([&] { return !ann->received.empty(); }));
  EXPECT_EQ(ann->received[0], (Received{kBob, text("new")}));
}

TEST_F(LinksTest, APortThatIsTakenIsAnError) {
  const auto ann = make_station(kAnn);
  LinksOptions options = options_of(kBob);
  options.port = ann->links->port();
  const auto links = Links::open(*loop_, book_, Secret(secret_bytes()), options, {});
  ASSERT_FALSE(links.has_value());
  EXPECT_EQ(links.error().code, Errc::kIo);
  options.port = 0;
  options.address = "no address";
  EXPECT_FALSE(Links::open(*loop_, book_, Secret(secret_bytes()), options, {}).has_value());
}

}  // namespace
}  // namespace areal::host
