// JPEG and PNG files in folders that are named after their classes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/encoded_images.h"

namespace arbalest::dataflow {

// Each split is either a folder with a folder for each class, or a text file that lists images, a path a line, below
// `directory`; the folder that a listed image lies in is its class. Classes are numbered in the order of their names,
// as the training split has them.
struct ImageFilesSource {
  std::filesystem::path directory;
  std::string train;  // below `directory`
  std::string test;
  std::string if_missing = "check the path";  // the likely fix, for the error
};

struct ImageFile {
  std::filesystem::path path;
  std::int32_t label = 0;
};

struct ImageFileList {
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// The files of a split; none is opened. In a folder only what is named .jpg, .jpeg or .png (in any case) is an image,
// and what begins with a dot is neither image nor class; how much was left out so is said in `warnings`. Throws
// ErrorKind::kData where a folder or list is missing or unreadable, a class has no image, a listed image lies in no
// folder or outside of `directory`, or the test split has a class of its own.
ImageFileList list_image_files(const ImageFilesSource& source, Split split, std::vector<std::string>& warnings);

// The same as examples; throws besides if there are not `classes` of them.
std::unique_ptr<const EncodedExamples> open_image_files(const ImageFilesSource& source, Split split,
                                                        std::int64_t classes, std::vector<std::string>& warnings);

// All bytes of a file. Throws ErrorKind::kData, naming it.
std::vector<std::uint8_t> read_whole_file(const std::filesystem::path& path);

}  // namespace arbalest::dataflow
