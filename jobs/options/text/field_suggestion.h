#pragma once

#include <span>
#include <string>
#include <string_view>

namespace arbalest::jobs {

// Returns which of `names` was meant by `word`, which is none of them: the one that other frameworks call `word`
// ("kernel_size" for kernel), the only one that ends with it ("epoch" for at_epoch) or that it ends with, or the
// nearest in spelling. "" if none of these exists, and for words that mean something else in the field ("elu" is not
// relu).
std::string suggested_name(std::string_view word, std::span<const std::string> names);

// Returns the path in a job of what other frameworks call `word`, "training.max_epochs" for "epochs"; "" if unknown.
std::string known_place(std::string_view word);

// "; did you mean 'kernel'?", or "" without a suggestion.
std::string suggestion(std::string_view word, std::span<const std::string> names);

}  // namespace arbalest::jobs
