// mlx-c calls std::format, which GCC 12 does not have yet. Set-up puts this file in front of
// every source it compiles: where the standard library lacks it, fmt's function of the same
// shape stands in. Newer compilers see nothing here.
#ifndef FIRESTEEL_STDFORMAT_H
#define FIRESTEEL_STDFORMAT_H

#ifdef __cplusplus
#include <version>
#ifndef __cpp_lib_format
#define FMT_HEADER_ONLY
#include <fmt/format.h>
namespace std {
using fmt::format;
}
#endif
#endif

#endif
