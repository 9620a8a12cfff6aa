// The table of keys, in the order in which a scenario is printed.
#include "engine/config/scenario_keys.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

namespace areal::config {
namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr auto kMaxTime = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

constexpr std::array<std::string_view, 4> kModelKinds = {"qwen3_30b_a3b", "qwen3_0_6b", "tiny", "tiny_fp32_router"};
constexpr std::array<std::string_view, 2> kLiveParts = {"sample", "all"};
constexpr std::array<std::string_view, 3> kUpdateModes = {"awex", "xccl", "disk"};
constexpr std::array<std::string_view, 2> kPlacements = {"separation", "colocation"};
constexpr std::array<std::string_view, 2> kSeats = {"guard", "judge"};
constexpr std::array<std::string_view, 10> kFaultNames = {
    "kill",      "hang",      "lose_message", "delay_message", "duplicate_message",
    "partition", "slow_link", "fail_compute", "flip_byte",     "no_memory"};
constexpr std::array<std::string_view, 8> kActNames = {"drop", "repeat", "delay",    "swap",
                                                       "fail", "set",    "complete", "emit"};
constexpr auto kVerdictNames = enum_names(Verdict{});

Key text(std::string_view name, std::string& value, std::string_view doc) {
  return {.name = name, .type = ValueType::kText, .value = &value, .doc = doc};
}
Key decimal(std::string_view name, std::string& value, std::string_view doc) {
  return {.name = name, .type = ValueType::kDecimal, .value = &value, .doc = doc};
}
Key flag(std::string_view name, bool& value, std::string_view doc) {
  return {.name = name, .type = ValueType::kFlag, .value = &value, .doc = doc};
}
Key number(std::string_view name, std::uint32_t& value, std::string_view doc, std::uint64_t least = 0) {
  return {.name = name, .type = ValueType::kNumber, .value = &value, .doc = doc, .least = least, .most = kMax32};
}
Key duration(std::string_view name, Duration& value, std::string_view doc, std::uint64_t least = 0) {
  return {.name = name, .type = ValueType::kTime, .value = &value, .doc = doc, .least = least, .most = kMaxTime};
}
Key bytes(std::string_view name, ValueType type, std::uint64_t& value, std::string_view doc) {
  return {.name = name, .type = type, .value = &value, .doc = doc, .least = 1, .most = kMaxTime};
}
bool always(const void* /*target*/) { return true; }

// A mapping that is always there; `keys` makes its keys.
template <auto keys, class T>
Key mapping(std::string_view name, T& value, std::string_view doc) {
  const GroupRef group{&value, always, [](void* target, int /*line*/) { return keys(*static_cast<T*>(target)); }};
  return {.name = name, .type = ValueType::kMapping, .value = group, .doc = doc};
}
Key required(Key key) {
  key.required = true;
  return key;
}

template <class E>
Key choice(std::string_view name, E& value, std::span<const std::string_view> names, std::string_view doc) {
  ChoiceRef ref{
      {names.begin(), names.end()},
      &value,
      [](const ChoiceRef& self) { return static_cast<std::size_t>(*static_cast<const E*>(self.target)); },
      [](const ChoiceRef& self, std::size_t index) { *static_cast<E*>(self.target) = static_cast<E>(index); }};
  return {.name = name, .type = ValueType::kChoice, .value = std::move(ref), .doc = doc};
}

template <class E>
Key optional_choice(std::string_view name, std::optional<E>& value, std::span<const std::string_view> names,
                    std::string_view doc) {
  using Target = std::optional<E>;
  ChoiceRef ref{
      {names.begin(), names.end()},
      &value,
      [](const ChoiceRef& self) {
        const auto& target = *static_cast<const Target*>(self.target);
        return target.has_value() ? static_cast<std::size_t>(*target) : self.names.size();
      },
      [](const ChoiceRef& self, std::size_t index) { *static_cast<Target*>(self.target) = static_cast<E>(index); }};
  return {.name = name, .type = ValueType::kChoice, .value = std::move(ref), .doc = doc};
}

// A choice that is kept as its word; empty: nothing chosen.
Key word_choice(std::string_view name, std::string& value, std::span<const std::string_view> names,
                std::string_view doc) {
  ChoiceRef ref{
      {names.begin(), names.end()},
      &value,
      [](const ChoiceRef& self) {
        const auto place = std::ranges::find(self.names, *static_cast<const std::string*>(self.target));
        return static_cast<std::size_t>(place - self.names.begin());
      },
      [](const ChoiceRef& self, std::size_t index) { *static_cast<std::string*>(self.target) = self.names[index]; }};
  return {.name = name, .type = ValueType::kChoice, .value = std::move(ref), .doc = doc};
}

// Keys of a match besides its kind and its fields.
KeyGroup match_keys(EventMatch& match) {
  return {.keys = {text("node", match.node,
                        "Pattern of the node it happens at; '*' is any run of characters, '' any node."),
                   number("occurrence", match.occurrence, "0: every time it happens; n: only the n-th time.")},
          .match = &match,
          .shorthand = {}};
}

// Remembers where the mapping is, if what it describes keeps that.
template <class T>
void set_line(T& value, int line) {
  if constexpr (requires { value.line; }) value.line = line;
}

Key match(std::string_view name, EventMatch& value, std::string_view doc) {
  const GroupRef group{&value, always, [](void* target, int line) {
                         set_line(*static_cast<EventMatch*>(target), line);
                         return match_keys(*static_cast<EventMatch*>(target));
                       }};
  return {.name = name, .type = ValueType::kMapping, .value = group, .doc = doc};
}

template <auto keys, class T>
Key optional_mapping(std::string_view name, std::optional<T>& value, std::string_view doc) {
  using Target = std::optional<T>;
  const GroupRef group{&value, [](const void* target) { return static_cast<const Target*>(target)->has_value(); },
                       [](void* target, int line) {
                         auto& place = *static_cast<Target*>(target);
                         if (!place.has_value()) place.emplace();
                         set_line(*place, line);
                         return keys(*place);
                       }};
  return {.name = name, .type = ValueType::kMapping, .value = group, .doc = doc};
}

template <auto keys, class T>
Key list(std::string_view name, std::vector<T>& value, std::string_view doc) {
  using Target = std::vector<T>;
  const ListRef items{&value, [](const void* target) { return static_cast<const Target*>(target)->size(); },
                      [](void* target, int line) { set_line(static_cast<Target*>(target)->emplace_back(), line); },
                      [](void* target, std::size_t index) { return keys((*static_cast<Target*>(target))[index]); }};
  return {.name = name, .type = ValueType::kList, .value = items, .doc = doc};
}

KeyGroup model_keys(ModelSettings& model) {
  return {.keys = {word_choice("kind", model.kind, kModelKinds, "Whose tensor names, shapes and sharding are used."),
                   choice("live", model.live_all, kLiveParts,
                          "Which tensors hold real bytes; all is slow and must give the same history."),
                   number("renamed", model.renamed, "So many tensors have another name on the engines' side.")},
          .match = nullptr,
          .shorthand = "kind"};
}

KeyGroup delta_keys(DeltaSettings& delta) {
  return {.keys = {flag("enabled", delta.enabled, "Only what an optimizer step changed is sent, where that is safe."),
                   text("method", delta.method, "How changes are found; adamw undoes the step."),
                   {.name = "anchor_interval",
                    .type = ValueType::kNumber,
                    .value = &delta.anchor_interval,
                    .doc = "A full update after so many deltas; 0: no periodic one.",
                    .most = kMaxTime,
                    .least_means = "0 = no periodic anchor"},
                   {.name = "window",
                    .type = ValueType::kBytes,
                    .value = &delta.window,
                    .doc = "Most bytes of corrections in flight; 0B: one parameter after the other.",
                    .most = kMaxTime},
                   number("minibatches", delta.minibatches, "Optimizer steps of one training step.", 1)},
          .match = nullptr,
          .shorthand = "enabled"};
}

KeyGroup checkpoint_keys(TrainSettings& train) {
  return {.keys = {number("every", train.checkpoint_every, "Training steps between two checkpoints; 0: none.")},
          .match = nullptr,
          .shorthand = "every"};
}

KeyGroup train_keys(TrainSettings& train) {
  static constexpr auto kSchedules = enum_names(Schedule{});
  return {.keys = {text("backend", train.backend, "Backend and layout of the trainer."),
                   duration("step_time", train.step_time, "One optimizer step of the configured model.", 1),
                   decimal("learning_rate", train.learning_rate, "Of AdamW; where a schedule begins."),
                   choice("schedule", train.schedule, kSchedules, "How the learning rate moves; linear falls to 0."),
                   decimal("weight_decay", train.weight_decay, "Of AdamW."),
                   decimal("beta1", train.beta1, "Of AdamW; below 1."),
                   decimal("beta2", train.beta2, "Of AdamW; below 1."), decimal("epsilon", train.epsilon, "Of AdamW."),
                   flag("lora", train.lora, "Only adapters are trained; not simulated."),
                   word_choice("update", train.update_mode, kUpdateModes,
                               "How weights reach the engines; only awex is simulated."),
                   mapping<delta_keys>("delta", train.delta, "Delta updates. A bare flag is enabled."),
                   mapping<checkpoint_keys>("checkpoint", train, "Checkpoints. A bare number is every.")}};
}

KeyGroup staleness_keys(RolloutSettings& rollout) {
  return {
      .keys = {number("max", rollout.staleness, "How many versions a sample may be behind when it is trained on."),
               flag("enforce", rollout.enforce_staleness, "A sample beyond the bound is a violation, not a number.")},
      .match = nullptr,
      .shorthand = "max"};
}

KeyGroup rollout_keys(RolloutSettings& rollout) {
  static constexpr auto kPauseModes = enum_names(port::PauseMode{});
  return {.keys = {
              text("backend", rollout.backend, "Backend and layout of the engines; d is their number."),
              number("batch", rollout.batch, "Sample groups (prompts) of a training batch.", 1),
              number("samples", rollout.samples, "Samples of a group.", 1),
              number("max_new_tokens", rollout.max_new_tokens, "Most tokens of a sample.", 1),
              number("concurrent", rollout.concurrent, "Most sample groups under way.", 1),
              mapping<staleness_keys>("staleness", rollout, "How far samples may be off policy. A bare number is max."),
              choice("pause", rollout.pause, kPauseModes, "What a pause does to running requests."),
              duration("grace", rollout.grace, "Between pause and update."),
              number("tokens_per_second", rollout.tokens_per_second, "Of one request.", 1),
              word_choice("placement", rollout.placement, kPlacements,
                          "Whether engines and trainer have devices of their own; only separation is simulated.")}};
}

KeyGroup work_keys(WorkSettings& work) {
  return {
      .keys = {number("updates", work.updates, "Training steps, each with a weight update.", 1),
               flag("pause_around_update", work.pause_around_update, "false: updates go to engines that may serve."),
               duration("request_timeout", work.request_timeout, "Before a request is asked again.", 1),
               number("request_tries", work.request_tries, "How often a request is asked at most.", 1),
               duration("update_timeout", work.update_timeout, "Of one attempt of an update.", 1),
               duration("init_timeout", work.init_timeout, "Of connecting trainer and engines.", 1),
               number("max_attempts", work.max_attempts, "Attempts of one update request.", 1),
               number("update_retries", work.update_retries, "New update requests after a failed one.")}};
}

KeyGroup link_keys(LinkSettings& links) {
  return {.keys = {{.name = "latency",
                    .type = ValueType::kTimeRange,
                    .value = &links.latency,
                    .doc = "Of a control message, one way; drawn from the range.",
                    .most = kMaxTime},
                   bytes("bandwidth", ValueType::kRate, links.bandwidth, "Payload of one rank, each way."),
                   duration("reset_after", links.reset_after, "Until a group notices a dead peer.")}};
}

KeyGroup device_keys(DeviceSettings& devices) {
  return {.keys = {bytes("memory", ValueType::kBytes, devices.memory, "Of one device."),
                   duration("load_time", devices.load_time, "Of the model, at process start."),
                   duration("start_time", devices.start_time, "From fork to running."),
                   bytes("copy_bandwidth", ValueType::kRate, devices.copy_bandwidth, "Pack and apply on the device.")}};
}

KeyGroup fault_keys(FaultSpec& fault) {
  static constexpr auto kOperations = enum_names(port::ComputeKind{});
  return {.keys = {required(choice("do", fault.kind, kFaultNames, "What goes wrong.")),
                   text("node", fault.node, "Pattern of the nodes it hits."),
                   text("other", fault.other, "Pattern of the other end of messages."),
                   word_choice("what", fault.what, kOperations, "fail_compute: which operation fails."),
                   {.name = "at",
                    .type = ValueType::kTime,
                    .value = &fault.at,
                    .doc = "Trigger: a virtual time.",
                    .most = kMaxTime},
                   optional_mapping<match_keys>("when", fault.when, "Trigger: an event of the run."),
                   {.name = "chance",
                    .type = ValueType::kRatio,
                    .value = &fault.chance,
                    .doc = "Trigger: each time it could happen, with this chance."},
                   {.name = "active",
                    .type = ValueType::kRatio,
                    .value = &fault.active,
                    .doc = "The chance that this fault is on at all in a run."},
                   duration("after", fault.after, "Later than its trigger by this."),
                   duration("lasts", fault.lasts, "How long it lasts, or how late a message is."),
                   number("factor", fault.factor, "slow_link: so many times slower.", 1),
                   number("limit", fault.limit, "At most so many times; 0: no limit.")}};
}

KeyGroup emit_keys(RuleSpec& rule) {
  return {.keys = {text("kind", rule.emit_kind, "Input, effect, message or tell that is made."),
                   text("node", rule.emit_node, "Where; '' is where the rule matched."),
                   text("slot", rule.emit_slot, "For which protocol; '' is the one that matched."),
                   {.name = "fields",
                    .type = ValueType::kFields,
                    .value = &rule.emit_fields,
                    .doc = "Its fields; the rest is 0."}}};
}

Key emit_key(RuleSpec& rule) {
  const GroupRef group{&rule,
                       [](const void* target) {
                         const auto& made = *static_cast<const RuleSpec*>(target);
                         return !made.emit_kind.empty() || !made.emit_node.empty() || !made.emit_slot.empty() ||
                                !made.emit_fields.empty();
                       },
                       [](void* target, int /*line*/) { return emit_keys(*static_cast<RuleSpec*>(target)); }};
  return {.name = "emit", .type = ValueType::kMapping, .value = group, .doc = "emit, complete: what is made."};
}

KeyGroup rule_keys(RuleSpec& rule) {
  return {.keys = {required(text("id", rule.id, "Name of the rule in recordings.")),
                   required(match("on", rule.match, "Which events it changes.")),
                   required(choice("do", rule.act, kActNames, "What it does to them.")),
                   {.name = "set",
                    .type = ValueType::kFields,
                    .value = &rule.set,
                    .doc = "set, fail, complete: fields and their values, field:NAME or node.PROBE.FIELD."},
                   duration("delay", rule.delay, "delay: by how much."),
                   emit_key(rule)}};
}

KeyGroup point_keys(InterleaveSpec& interleave, std::size_t index) {
  KeyGroup group = match_keys(interleave.points[index]);
  group.keys.insert(group.keys.begin(), required(text("name", interleave.names[index], "Of this point.")));
  return group;
}

KeyGroup interleave_keys(InterleaveSpec& interleave) {
  const ListRef points{
      &interleave, [](const void* target) { return static_cast<const InterleaveSpec*>(target)->points.size(); },
      [](void* target, int line) {
        auto& spec = *static_cast<InterleaveSpec*>(target);
        spec.points.emplace_back().line = line;
        spec.names.emplace_back();
      },
      [](void* target, std::size_t index) { return point_keys(*static_cast<InterleaveSpec*>(target), index); }};
  return {.keys = {number("limit", interleave.limit, "Most orders that are tried.", 1),
                   {.name = "points",
                    .type = ValueType::kList,
                    .value = points,
                    .doc = "Named events whose orders are all tried.",
                    .required = true}}};
}

KeyGroup budget_keys(BudgetSettings& budget) {
  return {
      .keys = {number("engines_down_max", budget.engines_down_max, "Ranks of engines that may be dead at a time."),
               duration("virtual", budget.virtual_max, "Longest run, in virtual time.", 1),
               {.name = "events",
                .type = ValueType::kNumber,
                .value = &budget.events_max,
                .doc = "Longest run, in events.",
                .least = 1},
               duration("heal_at", budget.heal_at, "No new fault after this; 0s: after three quarters of virtual.")}};
}

KeyGroup expect_keys(ExpectSettings& expect) {
  static constexpr auto kRefusals = enum_names(port::Refusal{});
  static constexpr auto kEnds = enum_names(port::RunEnd{});
  return {.keys = {choice("verdict", expect.verdict, kVerdictNames, "How the run must be judged."),
                   text("invariant", expect.invariant, "Of a violation: which one; '' is any."),
                   text("node", expect.node, "Of a violation: pattern of its node; '' is any."),
                   {.name = "version",
                    .type = ValueType::kNumber,
                    .value = &expect.version,
                    .doc = "Of a violation: its version.",
                    .most = kMaxTime},
                   optional_choice("end", expect.end, kEnds, "How the training loop must have ended."),
                   word_choice("refused", expect.refused, kRefusals, "A refusal that must have happened."),
                   number("published", expect.published, "At least so many versions are published.")}};
}

KeyGroup defect_keys(Scenario& scenario) {
  return {.keys = {required(text("name", scenario.defect, "Of a known defect.")),
                   word_choice("seat", scenario.defect_seat, kSeats, "Who must notice it: the product or a judge.")},
          .match = nullptr,
          .shorthand = "name"};
}

Key defect_key(Scenario& scenario) {
  const GroupRef group{&scenario,
                       [](const void* target) { return !static_cast<const Scenario*>(target)->defect.empty(); },
                       [](void* target, int /*line*/) { return defect_keys(*static_cast<Scenario*>(target)); }};
  return {.name = "defect",
          .type = ValueType::kMapping,
          .value = group,
          .doc = "What is built in wrongly in the half with_defect. A bare word is name."};
}

// The table is five levels deep; nothing in it comes from outside.
void collect_keys(const std::string& prefix, const KeyGroup& group, std::vector<KeyPath>& all) {
  for (const Key& key : group.keys) {
    const std::string path = prefix + std::string(key.name);
    all.push_back({path, key});
    if (const auto* mapped = std::get_if<GroupRef>(&key.value)) collect_keys(path + ".", mapped->open(0), all);
    if (const auto* listed = std::get_if<ListRef>(&key.value)) collect_keys(path + "[].", listed->append(0), all);
  }
}

}  // namespace

KeyGroup scenario_keys(Scenario& scenario) {
  return {.keys = {required(text("name", scenario.name, "Short name, used in file names.")),
                   text("why", scenario.why, "What it shows, in a sentence."),
                   mapping<model_keys>("model", scenario.model, "The model. A bare word is kind."),
                   mapping<train_keys>("train", scenario.train, "The trainer."),
                   mapping<rollout_keys>("rollout", scenario.rollout, "Engines and samples."),
                   mapping<work_keys>("work", scenario.work, "How much is done, and how patiently."),
                   mapping<link_keys>("links", scenario.links, "The network."),
                   mapping<device_keys>("devices", scenario.devices, "Devices and processes."),
                   list<fault_keys>("faults", scenario.faults, "What goes wrong."),
                   list<rule_keys>("rules", scenario.rules, "Inputs and effects that are rewritten."),
                   optional_mapping<interleave_keys>("interleave", scenario.interleave, "Orders of events, all tried."),
                   defect_key(scenario), mapping<budget_keys>("budget", scenario.budget, "Where a run is cut off."),
                   mapping<expect_keys>("expect", scenario.expect, "What must come of it, without a defect."),
                   optional_mapping<expect_keys>("with_defect", scenario.expect_defect,
                                                 "What must come of the half with the defect.")}};
}

std::vector<KeyPath> all_keys(Scenario& scenario) {
  std::vector<KeyPath> all;
  collect_keys("", scenario_keys(scenario), all);
  return all;
}

}  // namespace areal::config
