// Compares the order of class names: a class that is numbered by one list and named by another is called wrongly.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace arbalest::jobs {

// Whether both lists hold the same names in another order. Whole numbers are the same with and without leading zeros.
bool is_other_order(std::span<const std::string> names, std::span<const std::string> others);

// The first class whose names differ; -1 if there is none. Both lists have as many names.
std::ptrdiff_t first_difference(std::span<const std::string> names, std::span<const std::string> others);

// Whether all names are whole numbers, but do not ascend: sorted as text, 10 comes before 2.
bool are_uncounted_numbers(std::span<const std::string> names);

// Warns of names, in the order of the classes' numbers, that are_uncounted_numbers(); else "". `called`: the classes'
// names in the same order, which the job may have given. `origin`: where the names stand, "the folders of
// photos/train".
std::string numbers_warning(std::span<const std::string> names, std::span<const std::string> called, bool are_folders,
                            const std::string& origin);

// Warns of a class whose name in `called` is that of another class in `names`, in lists of as many classes; else "".
std::string exchange_warning(std::span<const std::string> names, std::span<const std::string> called,
                             const std::string& origin);

// "0, 1, 10, 11, 2 and 7 more": the names in their order, as far as they help to see it.
std::string in_order(std::span<const std::string> names);

}  // namespace arbalest::jobs
