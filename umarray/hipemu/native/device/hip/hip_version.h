// The version of ROCm that is emulated.
#pragma once
#define HIP_VERSION_MAJOR 5
#define HIP_VERSION_MINOR 0
#define HIP_VERSION_PATCH 13601
#define HIP_VERSION 50013601
