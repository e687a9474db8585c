// The counters, printed at the end of the process (--report).
#pragma once

namespace hipemu::report {

void print();

}  // namespace hipemu::report
