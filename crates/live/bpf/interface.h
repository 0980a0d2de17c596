/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The contract between the eBPF programs and user space. Mirrored in src/observe/layout.rs,
 * which checks sizes and offsets. */
#ifndef BOWWAVE_INTERFACE_H
#define BOWWAVE_INTERFACE_H

/* Marks are keyed by aligned chunks of 32 pages (128 KiB): one lookup a read in most cases. */
#define CHUNK_SHIFT 5
/* Files with marks, by a hash of their inode number: all other cached reads cost one bit test. */
#define MARKED_INODES_LOG2 12
#define INODE_HASH 0x9E3779B97F4A7C15ULL
/* A mark spans at most so many chunks. */
#define CHUNKS_PER_MARK 4
#define DISK_SLOTS 64	/* a power of two: indices are masked, which the verifier follows */

enum event_kind {
	EVENT_MISS = 0,		/* a read found its page absent */
	EVENT_KERNEL_MARK = 1,	/* a read touched the kernel's own PG_readahead mark */
	EVENT_MARK = 2,		/* a read or a mapped access touched our mark */
	EVENT_FAULT = 3,	/* a page fault that fault-around could not serve */
	EVENT_FILE = 4,		/* as EVENT_MISS of page 0, where only the file's directory is of interest */
	EVENT_PASSED = 16,	/* a stream passed a step: pages [mark_first, mark_last) */
};

/* How an absent page left the page cache. */
enum past {
	PAST_UNKNOWN = 0,	/* it was never there, or was dropped on purpose */
	PAST_EVICTED = 1,
	PAST_EVICTED_NEXT = 2,	/* its reader came from the page before it, and from the kernel's windows */
	PAST_EVICTED_UNUSED = 3,	/* the kernel had read it ahead for its reader */
};

/* What is reported of a file system's files. */
enum interest {
	INTEREST_ALL = 1,
	INTEREST_NOT_FORWARD = 2,	/* not what the kernel takes for plain forward reading */
};

enum event_flags {
	FLAG_RANDOM = 1,	/* the program advised random access */
	FLAG_SEQUENTIAL = 2,	/* the program advised sequential access */
	FLAG_MMAP = 4,
	FLAG_NOREUSE = 8,	/* the program advised that it uses everything once */
	FLAG_WRITTEN = 64,	/* the stream writes */
	FLAG_FOREGROUND = 128,	/* its process is none whose reads we lead */
};

struct event {
	u64 now_ns;		/* CLOCK_MONOTONIC */
	u64 ino;
	u64 page;
	u64 previous;		/* page touched before through this open file; ~0 if unknown */
	u64 file_bytes;
	u64 open_file;		/* an opaque identity */
	u32 dev;		/* s_dev in the kernel's encoding: major << 20 | minor */
	u32 generation;
	u32 tgid;
	u32 request_pages;
	u32 kernel_window;	/* ra_pages */
	u8 kind;
	u8 flags;
	u8 past;		/* of an absent page: enum past */
	u8 pad;
	u64 mark_first;		/* of an EVENT_MARK: the mark that was touched, and is gone */
	u64 mark_last;
	u64 directory;		/* of an EVENT_MISS of page 0, and of an EVENT_FILE: the directory's inode; 0 elsewhere */
	u32 directory_generation;
	u32 reserved;
};
_Static_assert(sizeof(struct event) == 104, "as decode_event has it");

struct file_key {
	u64 ino;
	u32 dev;
	u32 reserved;
};

struct file_state {
	u64 marked_chunks;	/* bit (chunk & 63) is set if a chunk may carry a mark */
	u64 muted_until_ns;	/* no misses or faults are reported before this moment */
	u32 managed;		/* its reader is managed: its reads are not foreground */
	u32 reserved;
};

struct mark_key {
	u64 ino;
	u64 chunk;
	u32 dev;
	u32 reserved;
};

struct mark {
	u64 first;
	u64 last;		/* inclusive */
};

/* Drop-behind keeps two bits a page, by blocks of so many (256 KiB). */
#define BLOCK_SHIFT 6
#define BLOCK_PAGES (1ULL << BLOCK_SHIFT)
/* How far a stream goes between two reports: 4 MiB. */
#define STEP_PAGES 1024
/* Other ones than this: of a machine there is one, and perhaps some of single file systems. */
#define DAEMONS 4
#define WATCHED_INODES_LOG2 13
#define FAILED_INODES_LOG2 12

struct block_key {
	u64 ino;
	u64 block;
	u32 dev;
	u32 reserved;
};

struct block {
	u64 brought;		/* into the cache, by the owner or for it */
	u64 used;
	u32 owner;		/* tgid; 0 until somebody uses what we read ahead */
	u32 epoch;		/* of looks_behind */
};

struct stream_key {
	u64 ino;
	u32 dev;
	u32 tgid;
	u32 written;
	u32 reserved;
};

struct stream {
	u64 first;		/* of the last access */
	u64 until;		/* up to here the run under way was seen */
	u64 reported;
	u64 low;		/* all it touched lies in [low, high) */
	u64 high;
	u64 again;		/* pages used behind the run since that went on */
	u64 follower;		/* where a second reader, behind the run, was last */
	u64 followed;		/* it has passed all up to here */
	u64 followed_last;	/* the last page of its last read */
	u64 follows_in_step;	/* whether that read was the run's as well */
};
_Static_assert(sizeof(struct block_key) == 24 && sizeof(struct block) == 24, "as encoded");
_Static_assert(sizeof(struct stream_key) == 24 && sizeof(struct stream) == 80, "as encoded");

/* What the block layer tells of one disk; counters only grow, but for the two in-flight ones. */
struct disk_stats {
	u64 foreground_reads;	/* reads that neither we nor the reader of a managed file issued */
	u64 foreground_ns;	/* their latencies, summed */
	u64 managed_reads;		/* reads issued by the readers of managed files */
	u64 managed_ns;
	u64 our_reads;
	u64 our_bytes;
	u64 our_ns;
	s64 our_bytes_in_flight;
	u64 seek_reads;	/* of programs' reads, those that did not continue the one before */
	u64 seek_ns;
	u64 reserved[6];	/* a disk a cache line pair */
};
_Static_assert(sizeof(struct disk_stats) == 128, "as encoded");
_Static_assert(sizeof(struct file_key) == 16 && sizeof(struct mark_key) == 24, "as encoded");
_Static_assert(sizeof(struct file_state) == 24 && sizeof(struct mark) == 16, "as encoded");

#endif
