"""What moved, what it cost, and what to do about it: counters, watches, traces, explanations, pictures."""
