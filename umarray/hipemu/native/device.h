// The devices: how many, what they say of themselves, which is current, who may reach whose memory.
#pragma once

#include "abi.h"

namespace hipemu {

// What is known of one kind of card; the modelled costs are in cost.h.
struct Profile {
  const char* name;         // as given to --profile
  const char* device_name;  // as the runtime reports it
  const char* arch;         // gfx number
  int arch_number;
  int major, minor;
  int compute_units;
  int clock_khz, memory_clock_khz, bus_bits;
  int l2_bytes;
  bool integrated;
};

namespace device {

const Profile& profile();
int count();
bool valid(int device);

// The current device of this thread.
int current();
void set_current(int device);

// What a device says of itself (properties.cpp).
void fill_properties(int device, hipDeviceProp_t* properties);
void fill_properties(int device, hipDeviceProp_tR0600* properties);
hipError_t attribute_value(int number, int device, int* value);

bool peer_enabled(int from, int to);
hipError_t set_peer(int from, int to, bool enable);

}  // namespace device
}  // namespace hipemu
