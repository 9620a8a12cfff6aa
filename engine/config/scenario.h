// A scenario as typed values: what is simulated, what goes wrong, and what must come of it.
//
// Read from YAML by read_scenario() (scenario_yaml.h); the rest of the program never sees YAML. Every value has the
// default that a scenario file may leave out. Times are whole nanoseconds, chances are ratios of whole numbers. Every
// spec keeps the line of the file it came from, so that a later refusal can name it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/time.h"
#include "engine/port/notes.h"

namespace areal::config {

struct Ratio {
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
};

// "200us..2ms": drawn uniformly, both ends included. Equal ends: no draw.
struct DurationRange {
  Duration least;
  Duration most;
};

struct ModelSettings {
  std::string kind = "tiny";  // qwen3_30b_a3b, qwen3_0_6b or tiny.
  bool live_all = false;      // live: all keeps real bytes for every tensor name instead of a sample of them.
  std::uint32_t renamed = 0;  // So many tensors have another name on the engine's side (a rename map lists them).
};

// Delta updates: only what one optimizer step changed is sent (spec/transfer.md 1.2).
struct DeltaSettings {
  bool enabled = false;
  std::string method = "adamw";
  std::int64_t anchor_interval = 0;    // Committed deltas between two full updates; 0: no periodic anchor.
  std::uint64_t window = 512'000'000;  // Bytes of corrections in flight; 0: one parameter after the other.
  std::uint32_t minibatches = 1;       // Optimizer steps of one training step.
};

// How the learning rate moves: kLinear falls to 0 at the end of the run, by one step of it a training step.
enum class Schedule : std::uint8_t { kConstant, kLinear };
constexpr std::array<std::string_view, 2> enum_names(Schedule /*tag*/) { return {"constant", "linear"}; }

struct TrainSettings {
  std::string backend = "megatron:d1";
  Duration step_time{20'000'000'000};  // Of one optimizer step of the configured model.
  Schedule schedule = Schedule::kConstant;
  std::string learning_rate = "3e-6";  // Optimizer values are decimals, as in an experiment file.
  std::string weight_decay = "0.003";
  std::string beta1 = "0.9";
  std::string beta2 = "0.999";
  std::string epsilon = "1e-8";
  bool lora = false;
  std::string update_mode = "awex";  // awex, xccl or disk.
  DeltaSettings delta;
  std::uint32_t checkpoint_every = 1;  // Training steps between two checkpoints; 0: none is written.
};

struct RolloutSettings {
  std::string backend = "sglang:d1";
  std::uint32_t batch = 8;    // Sample groups (prompts) a training batch; also the consumer batch size.
  std::uint32_t samples = 4;  // Samples a group.
  std::uint32_t max_new_tokens = 2048;
  std::uint32_t concurrent = 64;   // max_concurrent_rollouts, in sample groups.
  std::uint32_t staleness = 0;     // max_head_offpolicyness.
  bool enforce_staleness = false;  // INV-STALE-BOUND becomes safety.
  port::PauseMode pause = port::PauseMode::kAbortResubmit;
  Duration grace{0};                     // Between pause and update.
  std::uint32_t tokens_per_second = 60;  // Of one request.
  std::string placement = "separation";  // Of engines and trainer: on devices of their own, or colocation.
};

struct WorkSettings {
  std::uint32_t updates = 3;
  bool pause_around_update = true;  // False: updates go to engines that may be serving (they take their own lock).
  Duration request_timeout{10'000'000'000};  // Before a request is asked again.
  std::uint32_t request_tries = 30;
  Duration update_timeout{120'000'000'000};  // Of one attempt.
  Duration init_timeout{300'000'000'000};
  std::uint32_t max_attempts = 5;    // Of one update request.
  std::uint32_t update_retries = 0;  // New update requests of the trainer after a failed one.
};

struct LinkSettings {
  DurationRange latency{{200'000}, {2'000'000}};  // Of a control message, one way.
  std::uint64_t bandwidth = 25'000'000'000;       // Bytes a second of one rank's payload, each way.
  Duration reset_after{500'000'000};              // A dead Gloo peer is noticed after this.
};

struct DeviceSettings {
  std::uint64_t memory = 141'000'000'000;            // Bytes.
  Duration load_time{15'000'000'000};                // Of the configured model, at process start.
  Duration start_time{5'000'000'000};                // From fork to running.
  std::uint64_t copy_bandwidth = 1'000'000'000'000;  // Bytes a second of pack and apply on the device.
};

// ---- What goes wrong ----

struct FieldValue {
  std::string name;
  std::string value;
  int line = 0;
};

// Something that happens in the trace: the n-th event whose kind, node and fields fit.
struct EventMatch {
  std::string node;  // Pattern: '*' stands for any run of characters. Empty: every node.
  std::string kind;  // Name of an input, effect, message, tell or note kind (a body's kind goes before its carrier's).
  bool is_input = false;  // With a body kind: matches the input that carries it, else the effect. Set by `input: kind`.
  std::vector<FieldValue> fields;
  std::uint32_t occurrence = 0;  // 0: every one; n: only the n-th.
  int line = 0;
};

enum class FaultKind : std::uint8_t {
  kKill,              // The process dies now; its guard will notice.
  kHang,              // The process stops for `lasts`, then goes on.
  kLoseMessage,       // Requests and replies are lost.
  kDelayMessage,      // ... are late by `lasts`.
  kDuplicateMessage,  // ... come twice.
  kPartition,         // No message between `node` and `other`, both ways, for `lasts`.
  kSlowLink,          // Payload to and from `node` is `factor` times slower for `lasts`.
  kFailCompute,       // The next compute operation of kind `what` at `node` fails; kApply fails half-way.
  kFlipByte,          // A bit flips in the next payload received by `node`.
  kNoMemory,          // The next reservation at `node` is refused.
};

struct FaultSpec {
  FaultKind kind = FaultKind::kKill;
  std::string node;  // Pattern of the target.
  std::string other;
  std::string what;
  std::optional<Duration> at;      // Virtual time, or ...
  std::optional<EventMatch> when;  // ... at an event of the trace, or ...
  std::optional<Ratio> chance;     // ... each time it could happen.
  Ratio active{1, 1};              // The first coin: is this fault on in this run at all?
  Duration after{0};               // Later than its trigger by this.
  Duration lasts{0};
  std::uint32_t factor = 10;
  std::uint32_t limit = 0;  // At most so many times; 0: no limit.
  int line = 0;
};

enum class RuleAct : std::uint8_t { kDrop, kRepeat, kDelay, kSwap, kFail, kSet, kComplete, kEmit };

// A rewrite rule on inputs (before they are logged) and effects (after).
struct RuleSpec {
  std::string id;
  EventMatch match;
  RuleAct act = RuleAct::kDrop;
  std::vector<FieldValue> set;  // kSet, kFail, kComplete: values, `field:NAME` or `node.PROBE`.
  Duration delay{0};
  // kEmit (and kComplete): what is made, and where it happens.
  std::string emit_kind;  // An input or effect kind, or a message or tell body kind.
  std::string emit_node;  // Empty: the node that matched.
  std::string emit_slot;  // Protocol name; empty: the slot that matched.
  std::vector<FieldValue> emit_fields;
  int line = 0;
};

// Orders of a few named events, all tried.
struct InterleaveSpec {
  std::vector<EventMatch> points;
  std::vector<std::string> names;
  std::uint32_t limit = 5040;
};

struct BudgetSettings {
  std::uint32_t engines_down_max = 1;  // Ranks of engines that may be dead at the same time.
  Duration virtual_max{6 * 3'600'000'000'000};
  std::uint64_t events_max = 20'000'000;
  Duration heal_at{0};  // No new fault after this; 0: after three quarters of virtual_max.
};

enum class Verdict : std::uint8_t { kHeld, kSafety, kInconclusive, kLiveness };
// As scenarios expect it, recordings keep it and the command line prints it.
constexpr std::array<std::string_view, 4> enum_names(Verdict /*unused*/) {
  return {"held", "violation", "inconclusive", "liveness"};
}

struct ExpectSettings {
  Verdict verdict = Verdict::kHeld;
  std::string invariant;            // Of a violation, with its node and step; empty: any.
  std::string node;                 // Pattern.
  std::int64_t version = -1;        // -1: any.
  std::optional<port::RunEnd> end;  // How the training loop must have ended.
  std::string refused;              // A refusal that must have happened: its reason, e.g. plan_mismatch.
  std::uint32_t published = 0;      // At least so many versions.
  int line = 0;
};

// One half of a catalogue entry: the defect is on, and it must be found as said; or off, and the run must hold.
struct Scenario {
  std::string file;
  std::string name;
  std::string why;
  ModelSettings model;
  TrainSettings train;
  RolloutSettings rollout;
  WorkSettings work;
  LinkSettings links;
  DeviceSettings devices;
  std::vector<FaultSpec> faults;
  std::vector<RuleSpec> rules;
  std::optional<InterleaveSpec> interleave;
  std::string defect;       // Name of a known defect; on in the half with_defect.
  std::string defect_seat;  // guard or judge: who must notice it.
  BudgetSettings budget;
  ExpectSettings expect;                        // Without a defect, and in the half without_defect.
  std::optional<ExpectSettings> expect_defect;  // In the half with_defect.
  std::string resolved;  // The whole scenario with every default filled in, as YAML; part of a recording.
};

}  // namespace areal::config
