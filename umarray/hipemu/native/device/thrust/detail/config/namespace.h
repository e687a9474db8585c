// CuPy 14 puts its complex numbers into thrust's namespace with these.
#pragma once

#define THRUST_NAMESPACE_BEGIN namespace thrust {
#define THRUST_NAMESPACE_END }
