// Shadows the C library's: an assertion that fails in a kernel becomes hipErrorAssert, not an abort of the process.
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : hipemu_assert_failed(#condition, __FILE__, __LINE__))
#endif
#define abort() hipemu_trap("abort()")
#define __trap() hipemu_trap("__trap()")
