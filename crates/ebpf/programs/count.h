/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables that the programs of count.bpf.c fill. src/count/decode.rs decodes them. */
#ifndef BOWWAVE_COUNT_H
#define BOWWAVE_COUNT_H

#include "path.h"

/* Powers of 2 of a microsecond; the last bin, from half an hour, is open. A power of two: masked indices satisfy the
 * verifier. */
#define LATENCY_BINS 32
/* Processors with higher numbers share a counter. A power of two. */
#define PROCESSORS 256
/* Words from one processor's counter to the next: each has a cache line of its own. */
#define SEEN_WORDS 8
/* The most components of a path that are kept, from its end. */
#define NAME_COMPONENTS 6

struct count_key {
	u64 ino;
	u32 dev;	/* s_dev in the kernel's encoding: major << 20 | minor */
	u32 tgid;
};

struct counts {
	u64 reads;	/* calls that got pages from the page cache */
	u64 faults;	/* page faults in mappings of the file */
	u64 pages;	/* pages that these calls and faults asked for; one for each fault */
	u64 missing;	/* of these pages, those that were neither in the cache nor on their way */
	u64 brought;	/* pages that the process brought into the cache */
	/* How reads and faults lie to the one before, if they begin at another page. */
	u64 forward;	/* go on where it ended */
	u64 backward;	/* end where it began */
	u64 strided;	/* begin as far from it as it did from the one before */
	u64 random;	/* begin anywhere else */
	/* The last read or fault, no counters. */
	u64 first;
	u64 end;	/* the page after it; 0 before the first one */
	s64 step;	/* how many pages it began after the one before */
};

struct stalls {
	u64 ns;		/* the sum of all waits that are over */
	u64 waiting;	/* threads that wait now */
	u64 since_ns;	/* the sum of the times at which their waits began */
	u64 latency[LATENCY_BINS];	/* waits that are over, by their length */
};

struct file_name_key {
	u64 ino;
	u32 dev;
	u32 reserved;
};

struct file_name {
	u32 components;
	u32 is_whole;	/* up to the root of the file system */
	struct component component[NAME_COMPONENTS];	/* the last one first */
};

struct process {
	u64 cgroup;
	char name[16];
};

#endif
