// Reads rows of numbers with a class from text files whose first line names the columns (RFC 4180).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/formats/split_files.h"
#include "dataflow/input/images/stored_images.h"

namespace arbalest::dataflow {

// `label`: the name of the column of the classes; all other columns are features, in the order of the training set's
// first line. Throws ErrorKind::kData, naming the file, the line and the column: if a file is missing, has no row,
// lacks a column or has one too many, has a row of another length, or has a quote that is not closed; for values that
// are missing, no numbers, or not finite as float32; and for labels that the training set does not have. Throws
// kOutOfMemory, before it allocates, for rows beyond the budget.
std::unique_ptr<FloatImages> load_csv(const SplitFiles& files, const std::string& label);

// The names of the classes, sorted as text; none if all labels are whole numbers, which are the classes. Throws as
// load_csv does, but does not read the features.
std::vector<std::string> csv_class_names(const std::filesystem::path& training, const std::string& label);

}  // namespace arbalest::dataflow
