// All built in: see hipemu_device.h.
#pragma once
