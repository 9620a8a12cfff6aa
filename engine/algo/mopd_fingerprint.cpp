#include "engine/algo/mopd_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/algo/sha256.h"

namespace areal::algo {

namespace {

constexpr std::array<std::string_view, 15> kPresentation = {"_name_or_path",
                                                            "dtype",
                                                            "finetuning_task",
                                                            "id2label",
                                                            "label2id",
                                                            "output_attentions",
                                                            "output_hidden_states",
                                                            "problem_type",
                                                            "return_dict",
                                                            "return_dict_in_generate",
                                                            "task_specific_params",
                                                            "tokenizer_class",
                                                            "torch_dtype",
                                                            "transformers_version",
                                                            "use_cache"};

Result<JsonValue> parse_object(std::string_view file, std::string_view text) {
  auto parsed = parse_json(text);
  if (!parsed) return Error{Errc::kInvalid, fmt::format("{}: {}", file, parsed.error().detail)};
  if (!parsed->is(JsonValue::Kind::kObject)) return Error{Errc::kInvalid, fmt::format("{}: not an object", file)};
  return std::move(parsed).value();
}

// {vocabulary, added_tokens}.
Result<JsonValue> vocabulary_of(const TokenizerFiles& files) {
  JsonValue made = JsonValue::object();
  if (files.vocab_json) {
    auto vocabulary = parse_object("vocab.json", *files.vocab_json);
    if (!vocabulary) return std::move(vocabulary).error();
    made.set("vocabulary", std::move(vocabulary).value());
    made.set("added_tokens", JsonValue::null());
    return made;
  }
  if (files.tokenizer_json) {
    const auto tokenizer = parse_object("tokenizer.json", *files.tokenizer_json);
    if (!tokenizer) return tokenizer.error();
    const JsonValue* model = tokenizer.value().find("model");
    const JsonValue* vocabulary = model == nullptr ? nullptr : model->find("vocab");
    if (vocabulary == nullptr) return Error{Errc::kInvalid, "tokenizer.json: no model.vocab"};
    const JsonValue* added = tokenizer.value().find("added_tokens");
    made.set("vocabulary", *vocabulary);
    made.set("added_tokens", added == nullptr ? JsonValue::null() : *added);
    return made;
  }
  if (!files.tokenizer_model) return Error{Errc::kIo, "no vocab.json, tokenizer.json or tokenizer.model"};
  made.set("vocabulary", JsonValue::string(sha256_hex(*files.tokenizer_model)));
  made.set("added_tokens", JsonValue::null());
  return made;
}

}  // namespace

Fingerprint fingerprint_of(const JsonValue& payload) {
  std::string canonical = json_text(payload, KeyOrder::kSorted);
  std::string hash = sha256_hex(canonical);
  return {std::move(canonical), std::move(hash)};
}

Result<Fingerprint> architecture_fingerprint(std::string_view config_json) {
  const auto config = parse_object("config.json", config_json);
  if (!config) return config.error();
  JsonValue kept = JsonValue::object();
  for (std::size_t at = 0; at < config.value().keys.size(); ++at) {
    const std::string& key = config.value().keys[at];
    if (std::ranges::find(kPresentation, key) != kPresentation.end()) continue;
    kept.keys.push_back(key);  // Each once; looking for it first would take quadratic time.
    kept.items.push_back(config.value().items[at]);
  }
  return fingerprint_of(kept);
}

Result<Fingerprint> tokenizer_fingerprint(const TokenizerFiles& files) {
  auto payload = vocabulary_of(files);
  if (!payload) return std::move(payload).error();
  JsonValue decoder = JsonValue::object();
  if (files.tokenizer_config_json) {
    const auto config = parse_object("tokenizer_config.json", *files.tokenizer_config_json);
    if (!config) return config.error();
    if (const JsonValue* found = config.value().find("added_tokens_decoder"); found != nullptr) decoder = *found;
  }
  payload->set("added_tokens_decoder", std::move(decoder));
  return fingerprint_of(*payload);
}

Status check_compatible(const ModelFingerprints& actor, std::span<const ModelFingerprints> teachers) {
  for (const ModelFingerprints& teacher : teachers) {
    if (teacher.tokenizer != actor.tokenizer) {
      return Error{Errc::kInvalid, fmt::format("the tokenizer of '{}' is not the actor's", teacher.name)};
    }
    if (teacher.architecture != teachers.front().architecture) {
      return Error{Errc::kInvalid,
                   fmt::format("'{}' and '{}' have different architectures", teachers.front().name, teacher.name)};
    }
  }
  return Unit{};
}

}  // namespace areal::algo
