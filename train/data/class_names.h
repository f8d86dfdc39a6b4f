// Finds the names of a dataset's classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "options/job_options.h"

namespace arbalest::jobs {

// The names that lie beside the data: in batches.meta.txt (CIFAR-10), fine_label_names.txt (CIFAR-100) or classes.txt
// (shards), or as names of the training set's folders (images). Empty if there are none. Bytes of folder names that no
// terminal shows become '?'. Throws ErrorKind::kData, naming the file and the fix, if what lies there is not one name
// for each class.
std::vector<std::string> class_names_of_files(const DataOptions& data, const std::string& data_root);

// The same without the check: names may be too many, too few, or unfit for people.
std::vector<std::string> listed_class_names(const DataOptions& data, const std::string& data_root);

// The file or folder that has the names, whether or not it is there; "" for kinds of data that have none.
std::filesystem::path class_names_path(const DataOptions& data, const std::string& data_root);

// The names that the job gives; else those of its files.
std::vector<std::string> class_names(const DataOptions& data, const std::string& data_root);

}  // namespace arbalest::jobs
