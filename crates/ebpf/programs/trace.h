/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The events of trace.bpf.c. src/tracing/decode.rs decodes them. Name all padding. */
#ifndef BOWWAVE_TRACE_H
#define BOWWAVE_TRACE_H

#include "path.h"

/* Room for 100,000 runs. A power of two, as a ring must be. */
#define RING_BYTES (8 << 20)
/* The most files of a trace. */
#define MOST_FILES 65536
/* The most components of a path that are kept, from its end. */
#define PATH_COMPONENTS 16

enum trace_kind {
	TRACE_THREAD = 1,	/* comes before its first run */
	TRACE_FILE = 2,		/* comes before its first run */
	TRACE_RUN = 3,
	TRACE_WINDOW = 4,
	TRACE_REQUEST = 5,
};

enum trace_op {
	OP_READ = 0,
	OP_FAULT = 1,
	OP_WRITE = 2,
};

/* Of the open file of a run, as of its last absent page. */
enum trace_flags {
	FLAG_ADVICE = 1,	/* the two below are known */
	FLAG_RANDOM = 2,	/* POSIX_FADV_RANDOM */
	FLAG_SEQUENTIAL = 4,	/* POSIX_FADV_SEQUENTIAL */
	FLAG_OPENED = 8,	/* nothing was read through it before */
};

struct trace_thread {
	u32 kind;
	u32 thread;
	u32 process;
	u32 reserved;
	char name[16];
};

struct trace_file {
	u32 kind;
	u32 file;		/* its number */
	u64 bytes;
	u64 ino;
	u32 dev;		/* s_dev in the kernel's encoding: major << 20 | minor */
	u16 components;
	u16 is_whole;		/* up to the root of the file system */
	struct component component[PATH_COMPONENTS];	/* the last one first */
};

/* One call, or several alike that waited for nothing. */
struct trace_run {
	u32 kind;
	u32 thread;
	u32 file;
	u32 calls;
	u64 at_ns;		/* CLOCK_MONOTONIC */
	u64 took_ns;		/* from at_ns to the end of the last wait of a single call; 0 if nothing waited */
	u64 lasted_ns;		/* of several calls, from the first to the last */
	u64 first;		/* pages */
	u64 end;
	s64 step;		/* of several faults: from one page to the next */
	u32 op;
	u32 flags;
};

enum trace_reason {
	FOR_READ = 0,		/* a read lacked a page, or came to the look-ahead mark */
	FOR_FAULT = 1,		/* a fault did */
	ON_REQUEST = 2,		/* readahead, posix_fadvise or madvise */
};

/* Adjoining pages that the kernel brought into the cache for a thread, at once. If a thread is stopped meanwhile, the
 * rest is another event of the same time. */
struct trace_window {
	u32 kind;
	u32 thread;
	u32 file;
	u32 reason;
	u64 at_ns;		/* CLOCK_MONOTONIC, of its first page */
	u64 first;		/* pages */
	u64 end;
	u64 asked_first;	/* those of them that the read or fault itself had asked for */
	u64 asked_end;
};

enum trace_request_op {
	ASKS_READ = 0,
	ASKS_WRITE = 1,
	ASKS_OTHER = 2,		/* such as to flush the device's cache, or to discard blocks */
};

/* A request that a block device has completed. */
struct trace_request {
	u32 kind;
	u32 dev;		/* in the kernel's encoding */
	u32 op;
	u32 bytes;		/* 0 if it neither reads nor writes */
	u64 at_ns;		/* CLOCK_MONOTONIC, when the driver got it */
	u64 took_ns;
};

_Static_assert(sizeof(struct trace_window) == 56 && sizeof(struct trace_request) == 32, "as decoded");
_Static_assert(sizeof(struct trace_thread) == 32 && sizeof(struct trace_run) == 72, "as decoded");
_Static_assert(sizeof(struct trace_file) == 32 + 64 * PATH_COMPONENTS, "as decoded");

#endif
