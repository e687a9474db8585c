// The record of each page, the lists of what lives on each device, and the batching of view changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host_view.h"
#include "space.h"

namespace hipemu::pages {

using host_view::Level;

struct Page {
  uint8_t home = 0;       // place + 2; 0 for a page never touched
  bool managed = false;
  bool borrowed = false;  // host view open for a stored pointer
  uint8_t unused = 0;
  uint16_t copies = 0;    // bit place + 1: who holds the bytes (the home among them)
  uint16_t mapped = 0;    // bit place + 1: who reaches them without holding
  uint16_t waiting = 0;   // bit place + 1: closed until first touched there after a prefetch (history.h)
  uint32_t open = 0;      // two bits a place: the level its view has now

  int home_place() const { return static_cast<int>(home) - 2; }
  bool holds(int place) const { return copies >> (place + 1) & 1; }
  bool reaches(int place) const { return mapped >> (place + 1) & 1; }
  bool waits(int place) const { return waiting >> (place + 1) & 1; }
  bool shared() const { return (copies & (copies - 1)) != 0; }
  Level level(int place) const { return static_cast<Level>(open >> (2 * (place + 1)) & 3); }
  // The level that the view of a place should have.
  Level due(int place) const {
    if (waits(place) && !(borrowed && place == HOST)) return host_view::closed;
    if (holds(place) || reaches(place) || (borrowed && place == HOST)) {
      return shared() && !(borrowed && place == HOST) ? host_view::readable : host_view::writable;
    }
    return host_view::closed;
  }
};

Page& page(size_t index);

// Pages that live on a device, oldest first.
class Queue {
 public:
  explicit Queue(size_t pages);
  void append(size_t index);
  void remove(size_t index);
  bool contains(size_t index) const;
  // The oldest page that is not `except`; false if there is none.
  bool oldest(size_t except, size_t* index) const;

 private:
  struct Link {
    uint32_t before, after;  // index + 1; 0 for none
    uint32_t in;
  };
  Link* links_;
  uint32_t first_ = 0, last_ = 0;
};

Queue& queue(int device);

// Collects the view changes that pages are due, and makes them in runs of neighbours.
class Changes {
 public:
  ~Changes() { flush(); }
  void update(size_t index);  // bring all views of a page to the level they should have
  void flush();

 private:
  struct Run {
    size_t first = 0, count = 0;
    Level level = host_view::closed;
  };
  void add(int place, size_t index, Level level);
  void apply(int place);
  Run runs_[9];
};

}  // namespace hipemu::pages
