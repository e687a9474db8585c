// Page faults by signal: SIGSEGV on a closed page of a view becomes a migration, or the program's own crash.
//
// The handler is put in place when managed memory is made. A handler that the program sets later comes behind it
// (preload/signals.cpp); should one have taken its place all the same, a worker puts it back before the next operation.
// What was there before is called for faults that are not ours.
#pragma once

namespace hipemu::faults {

// Makes sure that the handler is the first one.
void watch();

// Closes what an operation of `device` left open: pages of the host view reached by stored pointers.
void finish_operation(int device);

}  // namespace hipemu::faults
