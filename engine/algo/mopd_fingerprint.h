// Fingerprints by which an actor and its teachers are found to speak of the same tokens.
//
// SHA-256 of canonical JSON: keys sorted, no blanks, UTF-8. Architecture: a model's config.json without the keys that
// say how it is presented. Tokenizer: {vocabulary, added_tokens, added_tokens_decoder}. Two folders with the same ids
// in different kinds of files have different fingerprints. Pure functions on the texts of the files; who calls reads
// them. Source: the compatibility check of multi-teacher distillation.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/algo/json_value.h"
#include "engine/base/result.h"

namespace areal::algo {

// A text that is hashed, and its hash in hex.
struct Fingerprint {
  std::string canonical;
  std::string sha256;
};

Fingerprint fingerprint_of(const JsonValue& payload);

// kInvalid: not JSON, or not an object.
Result<Fingerprint> architecture_fingerprint(std::string_view config_json);

// The files of a tokenizer that are there. Read, in this order: vocab.json; else the vocabulary and the added tokens of
// tokenizer.json; else the bytes of tokenizer.model.
struct TokenizerFiles {
  std::optional<std::string_view> vocab_json;
  std::optional<std::string_view> tokenizer_json;
  std::optional<std::string_view> tokenizer_model;
  std::optional<std::string_view> tokenizer_config_json;  // For added_tokens_decoder.
};

// kIo: none of the three is there. kInvalid: one that is read is malformed.
Result<Fingerprint> tokenizer_fingerprint(const TokenizerFiles& files);

// Of one model, as hashes.
struct ModelFingerprints {
  std::string name;
  std::string architecture;
  std::string tokenizer;
};

// kInvalid: a teacher with another tokenizer than the actor's, or two teachers with different architectures: they take
// turns in one engine. The actor's architecture may differ.
Status check_compatible(const ModelFingerprints& actor, std::span<const ModelFingerprints> teachers);

}  // namespace areal::algo
