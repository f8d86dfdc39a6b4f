#pragma once

#include <span>
#include <string>
#include <string_view>

namespace arbalest::jobs {

// Returns which of `names` was meant by `word`, which is none of them: the one that other frameworks call `word`
// ("kernel_size" for kernel), the only one that ends with it ("epoch" for at_epoch) or that it ends with, or the
// nearest in spelling. "" if none of these exists, and for known functions that Arbalest does not have ("elu" must
// not suggest relu). Case is ignored, and "-" counts as "_".
std::string suggested_name(std::string_view word, std::span<const std::string> names);

// Returns the path in a job of what other frameworks call `word`, "training.max_epochs" for "epochs"; "" if unknown.
// The path may contain the placeholder "<kind>": "optimizer.<kind>.momentum".
std::string known_place(std::string_view word);

// "; did you mean 'kernel'?", or "" without a suggestion.
std::string suggestion(std::string_view word, std::span<const std::string> names);

}  // namespace arbalest::jobs
