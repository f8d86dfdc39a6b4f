// Reads JPEG, PNG and WebP files from folders named after their classes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/encoded_images.h"

namespace arbalest::dataflow {

// Each split is either a folder with one folder per class, or a text file that lists images below `directory`, one path
// per line. The folder that holds a listed image is its class. Classes are numbered in the order of the training
// split's class names.
struct ImageFilesSource {
  std::filesystem::path directory;
  std::string train;  // below `directory`
  std::string test;
  std::string if_missing = "check the path";  // the likely fix, for the error message
  std::string validation = {};                // "": the validation set has no files of its own
};

struct ImageFile {
  std::filesystem::path path;
  std::int32_t label = 0;
};

struct ImageFileList {
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// The files of a split; none is opened. In a folder, only files with an image's extension (image_names.h) are images;
// names that begin with a dot are ignored. A warning counts all ignored entries, by their extensions; another one names
// classes that the test split lacks. Throws ErrorKind::kData if a folder or list is missing or unreadable, a class has
// no image, a listed image is in no folder or outside `directory`, or another split has a class that the training split
// lacks. The validation split must have all classes, and may list no image that the training split lists.
ImageFileList list_image_files(const ImageFilesSource& source, Split split, std::vector<std::string>& warnings);

// The names of the classes, in the order of their numbers. Reads the training split's list, or the names of its
// folders; does not look into them. Throws as list_image_files().
std::vector<std::string> image_class_names(const ImageFilesSource& source);

// Opens the same files as examples. Also throws if there are not `classes` classes.
std::unique_ptr<const EncodedExamples> open_image_files(const ImageFilesSource& source, Split split,
                                                        std::int64_t classes, std::vector<std::string>& warnings);

// All bytes of a file. Throws ErrorKind::kData, naming the file.
std::vector<std::uint8_t> read_whole_file(const std::filesystem::path& path);

}  // namespace arbalest::dataflow
