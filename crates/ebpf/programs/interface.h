/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the eBPF programs share with user space. The structs of src/observe/layout.rs are generated from these, its
 * constants are not. Name all padding.
 */
#ifndef BOWWAVE_INTERFACE_H
#define BOWWAVE_INTERFACE_H

/* Marks are keyed by aligned chunks of 32 pages (128 KiB), so most reads need one lookup. */
#define CHUNK_SHIFT 5
/* A bit set of files with marks, by a hash of the inode number: reads of other files cost one bit test. */
#define MARKED_INODES_LOG2 12
#define INODE_HASH 0x9E3779B97F4A7C15ULL
/* The most chunks of one mark. */
#define CHUNKS_PER_MARK 4
#define DISK_SLOTS 64	/* a power of two: masked indices satisfy the verifier */
#define SEEK_BYTES (64ULL << 20) /* as controller::SEEK_BYTES */

enum event_kind {
	EVENT_MISS = 0,		/* a read found its page absent */
	EVENT_KERNEL_MARK = 1,	/* a read touched the kernel's own PG_readahead mark */
	EVENT_MARK = 2,		/* a read or a mapped access touched our mark */
	EVENT_FAULT = 3,	/* a page fault that fault-around could not serve */
	EVENT_FILE = 4,		/* EVENT_MISS of page 0, of interest only for the file's directory */
	EVENT_PASSED = 16,	/* a stream passed the pages [mark_first, mark_last) */
};

/* How an absent page left the page cache. */
enum past {
	PAST_UNKNOWN = 0,	/* it was never cached, or was dropped on purpose */
	PAST_EVICTED = 1,
	PAST_EVICTED_NEXT = 2,	/* evicted; it is the next page of a reader that had a window */
	PAST_EVICTED_UNUSED = 3,	/* evicted after the kernel had read it ahead for its reader */
};

/* Which reads of a file system to report. */
enum interest {
	INTEREST_ALL = 1,
	/* All but those that look like plain forward reading to the kernel. Of that, only its marks in whole windows of
	 * at most `most_window` pages. */
	INTEREST_NOT_FORWARD = 2,
};

struct file_system {
	u32 interest;
	u32 most_window;
};

enum event_flags {
	FLAG_RANDOM = 1,	/* the program advised random access */
	FLAG_SEQUENTIAL = 2,	/* the program advised sequential access */
	FLAG_MMAP = 4,
	FLAG_NOREUSE = 8,	/* the program advised that it uses each page once */
	FLAG_WRITTEN = 64,	/* the stream writes */
	FLAG_FOREGROUND = 128,	/* we do not manage the reads of this process */
};

/* The remembered command has just begun. */
#define RULE_FRESH 0x80

struct event {
	u64 now_ns;		/* CLOCK_MONOTONIC */
	u64 ino;
	u64 page;
	u64 previous;		/* holds the byte behind the last read through this open file; ~0 if unknown */
	u64 file_bytes;
	u64 open_file;		/* an opaque identity; 0 if unknown */
	u32 dev;		/* s_dev in the kernel's encoding: major << 20 | minor */
	u32 generation;
	u32 tgid;
	u32 request_pages;
	u32 kernel_window;	/* ra_pages */
	u8 kind;
	u8 flags;
	u8 past;		/* enum past, of an absent page */
	u8 rule;		/* of a remembered command, from 1, and RULE_FRESH; 0: none */
	u64 mark_first;		/* of an EVENT_MARK: the mark that was touched and removed */
	u64 mark_last;
	u64 directory;		/* inode number of the directory, in an EVENT_FILE or an EVENT_MISS of page 0; else 0 */
	u32 directory_generation;
	u32 spender_uid;
	u64 spender_cgroup;	/* with the uid: whose budget of events this is of */
};
_Static_assert(sizeof(struct event) == 112, "as decoded");

struct file_key {
	u64 ino;
	u32 dev;
	u32 reserved;
};

struct file_state {
	u64 marked_chunks;	/* bit (chunk & 63) is set if the chunk may have a mark */
	u64 muted_until_ns;	/* report no misses and faults before this time */
	u32 managed;		/* its reader is managed, so its reads are not foreground */
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

/* Drop-behind keeps two bits per page, in blocks of 64 pages (256 KiB). */
#define BLOCK_SHIFT 6
#define BLOCK_PAGES (1ULL << BLOCK_SHIFT)
/* Report a stream every 4 MiB. */
#define STEP_PAGES 1024
/* The most other daemons: usually one, perhaps some more for single file systems. */
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
	u64 brought;		/* pages brought into the cache by the owner or for it */
	u64 used;		/* pages used since */
	u32 owner;		/* tgid; 0 until somebody uses what we read ahead */
	u32 epoch;		/* the value of looks_behind then */
};

struct stream_key {
	u64 ino;
	u32 dev;
	u32 tgid;
	u32 written;
	u32 reserved;
};

struct stream {
	u64 first;		/* first page of the last access */
	u64 until;		/* the end of the current run */
	u64 reported;		/* up to here the run was reported */
	u64 low;		/* all pages touched lie in [low, high) */
	u64 high;
	u64 again;		/* pages used behind the run since it last advanced */
	u64 follower;		/* first page of the last access of a second reader, behind the run */
	u64 followed;		/* the second reader has passed all pages up to here */
	u64 followed_last;	/* last page of its last read */
	u64 follows_in_step;	/* whether both readers advance together */
};
_Static_assert(sizeof(struct block_key) == 24 && sizeof(struct block) == 24, "as encoded");
_Static_assert(sizeof(struct stream_key) == 24 && sizeof(struct stream) == 80, "as encoded");

/* A descriptor of the calling process. Mirrored in src/open_file.rs. */
struct open_file {
	u32 number;		/* in: the descriptor */
	u32 mode;		/* f_mode */
	u32 window_pages;
	u32 was_found;
	u32 is_leased;		/* somebody holds a write lease on the file */
};
_Static_assert(sizeof(struct open_file) == 20, "as encoded");

/* The block layer's reads of one disk. Counters only grow, except for our_bytes_in_flight. */
struct disk_stats {
	u64 foreground_reads;	/* reads by others than us and the readers of managed files */
	u64 foreground_ns;	/* the sum of their latencies */
	u64 managed_reads;	/* reads by the readers of managed files */
	u64 managed_ns;
	u64 our_reads;
	u64 our_bytes;
	u64 our_ns;
	s64 our_bytes_in_flight;
	u64 seek_reads;		/* reads by others than us, more than SEEK_BYTES from the end of the disk's previous read */
	u64 seek_ns;
	u64 bytes;		/* of all reads that are done */
	u64 reserved[5];	/* pads to two cache lines */
};
_Static_assert(sizeof(struct disk_stats) == 128, "as encoded");
_Static_assert(sizeof(struct file_key) == 16 && sizeof(struct mark_key) == 24, "as encoded");
_Static_assert(sizeof(struct file_system) == 8, "as encoded");
_Static_assert(sizeof(struct file_state) == 24 && sizeof(struct mark) == 16, "as encoded");

#endif
