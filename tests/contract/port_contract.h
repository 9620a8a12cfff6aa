// The fixture of all port contracts, and one suite name for each port.
//
// An implementation runs them all by AREAL_PORT_CONTRACTS, as port_contract_test.cpp does for the simulated room.
#pragma once
#include <gtest/gtest.h>

#include <ostream>

#include "tests/contract/port_harness.h"

namespace areal::test {

inline void PrintTo(const Implementation& implementation, std::ostream* out) { *out << implementation.name; }

// What the suites send to each other.
struct Word {
  std::uint64_t value = 0;
  AREAL_RECORD(0x7F01, "contract_word", value)
};

inline constexpr SlotId kFirst{0};
inline constexpr SlotId kSecond{1};

class PortContract : public testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override { harness_ = GetParam().make(); }

  PortHarness& room() { return *harness_; }
  node::Ports& at(Seat seat) { return harness_->ports(seat); }

  // All inputs of type T that this slot was told, in order.
  template <class T>
  [[nodiscard]] std::vector<T> told(Seat seat, SlotId slot = kFirst) const {
    std::vector<T> found;
    for (const proto::Input& input : harness_->seen(seat, slot)) {
      if (const T* typed = std::get_if<T>(&input); typed != nullptr) found.push_back(*typed);
    }
    return found;
  }
  [[nodiscard]] std::size_t told_in_all(Seat seat) const {
    return harness_->seen(seat, kFirst).size() + harness_->seen(seat, kSecond).size();
  }

 private:
  std::unique_ptr<PortHarness> harness_;
};

class ClockContract : public PortContract {};
class ExecutorContract : public PortContract {};
class MessageContract : public PortContract {};
class GroupContract : public PortContract {
 protected:
  void join(Seat seat, GroupId group, std::uint32_t rank, std::uint32_t world,
            port::Backend backend = port::Backend::kGloo) {
    at(seat).transport().join(kFirst, {group, backend, rank, world, 20'000});
  }
  // Engine, trainer and other meet as ranks 0, 1 and 2.
  void meet(GroupId group, port::Backend backend = port::Backend::kGloo) {
    join(Seat::kEngine, group, 0, 3, backend);
    join(Seat::kTrainer, group, 1, 3, backend);
    join(Seat::kOther, group, 2, 3, backend);
    room().settle();
  }
  // Posts a meeting of control words.
  void post(Seat seat, GroupId group, BatchId batch, port::BatchKind kind, std::uint64_t tag, std::uint64_t value = 0,
            std::uint64_t count = 0) {
    port::PostBatch asked;
    asked.group = group;
    asked.batch = batch;
    asked.kind = kind;
    asked.tag = tag;
    asked.value = value;
    asked.count = count;
    at(seat).transport().post(kFirst, asked);
  }
  [[nodiscard]] std::vector<port::BatchDone> done(Seat seat) const { return told<port::BatchDone>(seat); }
  [[nodiscard]] std::vector<port::Outcome> outcomes(Seat seat) const {
    std::vector<port::Outcome> all;
    for (const port::BatchDone& one : done(seat)) all.push_back(one.outcome);
    return all;
  }
};
class MemoryContract : public PortContract {};
class StoreContract : public PortContract {};
class ProcessContract : public PortContract {};
class ComputeContract : public PortContract {
 protected:
  void ask(Seat seat, std::uint64_t op, port::ComputeKind what, Version version = 0, std::uint64_t seed = 0,
           std::uint64_t amount = 0) {
    at(seat).compute().start(kFirst, {OpId{op}, what, version, {}, 1, seed, amount});
  }
  [[nodiscard]] std::vector<port::ComputeDone> done(Seat seat) const { return told<port::ComputeDone>(seat); }
  [[nodiscard]] std::vector<port::ComputeDone> done_of(Seat seat, std::uint64_t op) const {
    std::vector<port::ComputeDone> found;
    for (const port::ComputeDone& one : done(seat)) {
      if (one.op.value == op) found.push_back(one);
    }
    return found;
  }
};

inline std::string name_of_implementation(const testing::TestParamInfo<Implementation>& info) {
  return info.param.name;
}

}  // namespace areal::test

// NOLINTBEGIN(cppcoreguidelines-macro-usage): googletest registers suites by macros.
#define AREAL_PORT_CONTRACT(prefix, suite, implementation) \
  INSTANTIATE_TEST_SUITE_P(prefix, suite, testing::Values(implementation), name_of_implementation)
// Runs every contract on an Implementation. Within namespace areal::test.
#define AREAL_PORT_CONTRACTS(prefix, implementation)             \
  AREAL_PORT_CONTRACT(prefix, ClockContract, implementation);    \
  AREAL_PORT_CONTRACT(prefix, ExecutorContract, implementation); \
  AREAL_PORT_CONTRACT(prefix, MessageContract, implementation);  \
  AREAL_PORT_CONTRACT(prefix, GroupContract, implementation);    \
  AREAL_PORT_CONTRACT(prefix, MemoryContract, implementation);   \
  AREAL_PORT_CONTRACT(prefix, StoreContract, implementation);    \
  AREAL_PORT_CONTRACT(prefix, ProcessContract, implementation);  \
  AREAL_PORT_CONTRACT(prefix, ComputeContract, implementation)
// NOLINTEND(cppcoreguidelines-macro-usage)
