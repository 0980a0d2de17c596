/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parts of paths, for user space. */
#ifndef BOWWAVE_PATH_H
#define BOWWAVE_PATH_H

/* 64 bytes with the 0 at the end. In words, since the generated code has no longer arrays. */
#define NAME_WORDS 8

struct component {
	u64 text[NAME_WORDS];
};

#endif
