// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The eBPF programs: report the few page-cache accesses that matter.
 *
 *   read finds no page     page_cache_sync_ra   ------------------ EVENT_MISS ---------> ring
 *   kernel's own mark      page_cache_async_ra  ------------------ EVENT_KERNEL_MARK --> ring
 *   fault finds no page    mm_filemap_fault     ------------------ EVENT_FAULT --------> ring
 *   any read               mm_filemap_get_pages -- our mark? yes - EVENT_MARK ---------> ring
 *   fault-around           mm_filemap_map_pages -- our mark? yes - EVENT_MARK ---------> ring
 *   block layer            block_io_start/done  ------------------ counters per disk (block.bpf.h)
 *
 * On kernels without these tracepoints, programs hook the functions that would call them (functions.bpf.h). User space
 * loads one or the other (src/kernel.rs).
 *
 * If a device answers faster than user space could react, plain forward reads are not reported, except the first page
 * of each file with its directory.
 *
 * User space puts marks into `marks`; the access that touches a mark removes it. The programs that see cached reads are
 * attached only while there are marks or drop-behind needs them. A read of a file without marks then costs one bit
 * test. The programs that count are attached only while a disk is counted.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "interface.h"
#include "lease.bpf.h"
#include "page_cache.bpf.h"
#include "pointer.bpf.h"
#include "spender.bpf.h"
#include "remembered.bpf.h"
#include "tasks.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FMODE_RANDOM 0x1000
#define FMODE_NOREUSE 0x800000
#define NO_PAGE (~0ULL)
/* 2 MiB. The next batch of a longer read is seen by itself. */
#define CHUNKS_PER_READ 16
/* 2 MiB, the largest folio. */
#define MOST_FOLIO_PAGES 512

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct file_system);
} file_systems SEC(".maps"); /* by s_dev */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DISK_SLOTS);
	__type(key, u32);
	__type(value, u32);
} disks SEC(".maps"); /* disk's dev -> slot in disk_stats */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, struct file_state);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct mark_key);
	__type(value, struct mark);
} marks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct place {
	u64 ino;
	u64 index;
	u32 dev;
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct place);
} faults SEC(".maps"); /* task -> its last fault on a page that was in the cache, or on its way */

u64 lost_events;
struct event event;	/* for its type: types of rings are not generated */
u64 marked_inodes[1 << (MARKED_INODES_LOG2 - 6)];
u32 daemons[DAEMONS];	/* tgids of other bowwave daemons; 0 in free slots */
/* Set before loading: the names that bowwave may have, as words of `task_struct.comm`. */
const volatile u64 own_names[2][2] = {};
/* A program of such a name has begun since user space has looked for daemons. */
u32 may_be_new_daemon;

/* Whether we manage the reads of the current task. */
static __always_inline bool manages_current_task(void)
{
	return follows(bpf_get_current_pid_tgid() >> 32);
}

/* What to report of a file, and its key; null if it is not a regular file on a watched file system, or leased. */
static __always_inline struct file_system *interest_in(struct inode *inode, struct file_key *key)
{
	u32 dev = inode->i_sb->s_dev;
	struct file_system *file_system = bpf_map_lookup_elem(&file_systems, &dev);

	if (!file_system)
		return 0;
	if ((inode->i_mode & S_IFMT) != S_IFREG || has_write_lease(inode->i_flctx))
		return 0;
	key->ino = inode->i_ino;
	key->dev = dev;
	key->reserved = 0;
	return file_system;
}

static __always_inline bool is_muted(struct file_key *key, u64 now)
{
	struct file_state *state = bpf_map_lookup_elem(&files, key);

	return state && state->muted_until_ns > now;
}

static __always_inline struct event *begin_event(struct inode *inode, struct file_key *key,
						 u64 page, u64 last, u64 now)
{
	struct spender spender = {};
	struct event *event = 0;

	if (spend_event(&spender, now))
		event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost_events, 1);
		return 0;
	}
	event->now_ns = now;
	event->ino = key->ino;
	event->dev = key->dev;
	event->page = page;
	event->request_pages = last >= page && last - page < (1 << 20) ? last - page + 1 : 1;
	event->previous = NO_PAGE;
	event->file_bytes = BPF_CORE_READ(inode, i_size);
	event->generation = BPF_CORE_READ(inode, i_generation);
	event->tgid = bpf_get_current_pid_tgid() >> 32;
	event->kernel_window = BPF_CORE_READ(inode, i_sb, s_bdi, ra_pages);
	event->open_file = 0;
	event->flags = 0;
	event->past = PAST_UNKNOWN;
	event->rule = spender.is_container ? 0 : remembered_rule(now);
	event->mark_first = 0;
	event->mark_last = 0;
	event->directory = 0;
	event->directory_generation = 0;
	event->spender_uid = spender.uid;
	event->spender_cgroup = spender.cgroup;
	return event;
}

/* Adds what the program advised: the read-ahead state is embedded in the open file. */
static __always_inline void add_advice(struct event *event, struct inode *inode,
				       struct file_ra_state *ra)
{
	u32 window = BPF_CORE_READ(ra, ra_pages);
	s64 previous = BPF_CORE_READ(ra, prev_pos);
	struct file *file = (void *)ra - bpf_core_field_offset(struct file, f_ra);
	u32 mode;

	if (previous >= 0)
		event->previous = previous >> PAGE_SHIFT;
	event->open_file = (u64)ra;
	if (BPF_CORE_READ(file, f_inode) == inode) {
		mode = BPF_CORE_READ(file, f_mode);
		if (mode & FMODE_RANDOM)
			event->flags |= FLAG_RANDOM;
		if (mode & FMODE_NOREUSE)
			event->flags |= FLAG_NOREUSE;
	}
	/* POSIX_FADV_SEQUENTIAL doubles the window of the open file. */
	if (window == 2 * event->kernel_window)
		event->flags |= FLAG_SEQUENTIAL;
	event->kernel_window = window;
}

/* Adds the directory through which the file was opened. */
static __always_inline void add_directory(struct event *event, struct inode *inode,
					  struct file_ra_state *ra)
{
	struct file *file = (void *)ra - bpf_core_field_offset(struct file, f_ra);
	struct dentry *dentry, *parent;

	if (BPF_CORE_READ(file, f_inode) != inode)
		return;
	dentry = BPF_CORE_READ(file, f_path.dentry);
	parent = BPF_CORE_READ(dentry, d_parent);
	if (!parent || parent == dentry)
		return;
	event->directory = BPF_CORE_READ(parent, d_inode, i_ino);
	event->directory_generation = BPF_CORE_READ(parent, d_inode, i_generation);
}

/* Whether this looks like plain forward reading to the kernel, which then reads ahead by itself. */
static __always_inline bool goes_forward(struct file_ra_state *ra, u64 index, u8 kind)
{
	u64 previous = ra->prev_pos >> PAGE_SHIFT;

	return kind == EVENT_KERNEL_MARK || index == 0 || index - previous <= 1;
}

/* Whether this is a mark of the kernel in a whole window of at most `most` pages. */
static __always_inline bool is_in_whole_window(struct file_ra_state *ra, u8 kind, u32 most)
{
	return kind == EVENT_KERNEL_MARK && ra->size >= ra->ra_pages && ra->ra_pages <= most;
}

/* How an absent page left the page cache. The tracepoint comes before the kernel reads the page and opens its next
 * window, so the shadow entry and the old window are still there. A page ahead of the reader, in the current window or
 * the one before it, was evicted unused. */
static __always_inline u8 past_of(struct inode *inode, struct file_ra_state *ra, u64 index)
{
	u64 previous = ra->prev_pos >> PAGE_SHIFT, end = ra->start + ra->size;

	if (!(page_cache_entry(inode->i_mapping, index) & EVICTED_TAG))
		return PAST_UNKNOWN;
	if (ra->prev_pos < 0 || !ra->size)
		return PAST_EVICTED;
	if (index >= previous && previous + ra->size >= ra->start && index < end)
		return PAST_EVICTED_UNUSED;
	return index - previous <= 1 ? PAST_EVICTED_NEXT : PAST_EVICTED;
}

/* Whether this task's last fault is at this page or in the folio that begins with it, and so has led here. */
static __always_inline bool is_fault(struct file_key *key, u64 index)
{
	u64 task = bpf_get_current_pid_tgid();
	struct place *fault = bpf_map_lookup_elem(&faults, &task);

	return fault && fault->ino == key->ino && fault->dev == key->dev &&
	       fault->index - index < MOST_FOLIO_PAGES;
}

static __always_inline int on_read_ahead(struct inode *inode, u64 index, struct file_ra_state *ra,
					 u64 request, u8 kind)
{
	struct file_key key;
	struct file_system *file_system = interest_in(inode, &key);
	struct event *event;
	u64 now;

	if (!file_system || !manages_current_task())
		return 0;
	if (file_system->interest == INTEREST_NOT_FORWARD && goes_forward(ra, index, kind) &&
	    !is_in_whole_window(ra, kind, file_system->most_window)) {
		/* A program that goes from file to file waits for each first page. */
		if (kind != EVENT_MISS || index)
			return 0;
		kind = EVENT_FILE;
	}
	now = bpf_ktime_get_ns();
	if (is_muted(&key, now))
		return 0;
	event = begin_event(inode, &key, index, index + (request ? request - 1 : 0), now);
	if (!event)
		return 0;
	event->kind = kind;
	if (kind == EVENT_MISS)
		event->past = past_of(inode, ra, index);
	if (index == 0 && kind != EVENT_KERNEL_MARK)
		add_directory(event, inode, ra);
	add_advice(event, inode, ra);
	if (kind == EVENT_KERNEL_MARK && is_fault(&key, index)) {
		/* The kernel treats a fault as a request for a whole window. */
		event->request_pages = 1;
		event->flags |= FLAG_MMAP;
	}
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("tp_btf/page_cache_sync_ra")
int BPF_PROG(on_sync_ra, struct inode *inode, unsigned long index, struct file_ra_state *ra,
	     unsigned long request)
{
	return on_read_ahead(read_only(inode), index, ra, request, EVENT_MISS);
}

SEC("tp_btf/page_cache_async_ra")
int BPF_PROG(on_async_ra, struct inode *inode, unsigned long index, struct file_ra_state *ra,
	     unsigned long request)
{
	return on_read_ahead(read_only(inode), index, ra, request, EVENT_KERNEL_MARK);
}

#include "behind.bpf.h"

/* An access, and the mark that it touches. */
struct touch {
	struct mark_key key;	/* of the chunk that is looked at */
	struct mark taken;
	u64 first;
	u64 last;
	u64 marked_chunks;
	bool touches;
};

/* Removes a part of the mark that was taken. */
static long clear_next(u64 number, void *data)
{
	struct touch *touch = data;
	struct mark *mark = bpf_map_lookup_elem(&marks, &touch->key);

	/* User space may have put another mark there. */
	if (mark && mark->first == touch->taken.first && mark->last == touch->taken.last)
		bpf_map_delete_elem(&marks, &touch->key);
	touch->key.chunk++;
	return touch->key.chunk > touch->taken.last >> CHUNK_SHIFT;
}

/* Takes the mark that the access touches in this chunk, if there is one. If several tasks touch it at once, only the
 * one that deletes this chunk's entry reports it. */
static long take_next(u64 number, void *data)
{
	struct touch *touch = data;
	struct mark *mark;

	if (touch->marked_chunks & (1ULL << (touch->key.chunk & 63))) {
		mark = bpf_map_lookup_elem(&marks, &touch->key);
		if (mark && mark->first <= touch->last && mark->last >= touch->first) {
			touch->taken = *mark;
			touch->touches = !bpf_map_delete_elem(&marks, &touch->key);
			if (touch->touches)
				return 1;
		}
	}
	touch->key.chunk++;
	return touch->key.chunk > touch->last >> CHUNK_SHIFT;
}

/* Removes the mark that the access touches. False if it touches none. The loops are calls of bpf_loop, as in
 * behind.bpf.h. */
static __always_inline bool take_mark(struct touch *touch)
{
	bpf_loop(CHUNKS_PER_READ, take_next, touch, 0);
	if (!touch->touches)
		return false;
	touch->key.chunk = touch->taken.first >> CHUNK_SHIFT;
	bpf_loop(CHUNKS_PER_MARK, clear_next, touch, 0);
	return true;
}

/* User space sets the bit before it sets the mark. */
static __always_inline bool may_carry_marks(u64 ino)
{
	u32 bit = (ino * INODE_HASH) >> (64 - MARKED_INODES_LOG2);

	return marked_inodes[bit >> 6] & (1ULL << (bit & 63));
}

/* Reports the mark that the access touches, if there is one. `is_over`: the access is reported when it is done, so a
 * forward reader has come to `last` at least. */
static __always_inline void report_mark(struct inode *inode, u64 first, u64 last, u8 flags, bool is_over)
{
	struct file_state *state;
	struct file_key key;
	struct event *event;
	struct touch touch;

	if (!may_carry_marks(inode->i_ino) || !interest_in(inode, &key))
		return;
	state = bpf_map_lookup_elem(&files, &key);
	if (!state || !state->marked_chunks || !manages_current_task())
		return;
	touch = (struct touch){
		.key = { .ino = key.ino, .dev = key.dev, .chunk = first >> CHUNK_SHIFT },
		.first = first,
		.last = last,
		.marked_chunks = state->marked_chunks,
	};
	if (!take_mark(&touch))
		return;
	event = begin_event(inode, &key, first, last, bpf_ktime_get_ns());
	if (!event)
		return;
	event->kind = EVENT_MARK;
	if (is_over)
		event->previous = last;
	event->mark_first = touch.taken.first;
	event->mark_last = touch.taken.last;
	event->flags = flags;
	bpf_ringbuf_submit(event, 0);
}

static __always_inline int on_access(struct address_space *mapping, u64 first, u64 last, u8 flags,
				     bool is_over)
{
	struct inode *inode = mapping->host;

	if (!inode)
		return 0;
	report_mark(inode, first, last, flags, is_over);
	if (drops_behind)
		follow_stream(inode, first, last, flags);
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(on_get_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	return on_access(read_only(mapping), first, last, 0, false);
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(on_map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	return on_access(read_only(mapping), first, last, FLAG_MMAP, false);
}

/* Notes a fault on a page that is in the cache. If the page carries the kernel's mark, the mark is reported next, and
 * is_fault tells that a fault has led there. */
static __always_inline void note_fault(struct file_key *key, u64 index)
{
	struct place place = { .ino = key->ino, .index = index, .dev = key->dev };
	u64 task = bpf_get_current_pid_tgid();

	bpf_map_update_elem(&faults, &task, &place, BPF_ANY);
}

/* Reports the fault if the page is absent, and notes it otherwise. */
static __always_inline void report_fault(struct address_space *mapping, struct inode *inode, u64 index)
{
	u64 now = bpf_ktime_get_ns(), entry;
	struct file_key key;
	struct event *event;

	if (!interest_in(inode, &key) || !manages_current_task() || is_muted(&key, now))
		return;
	entry = page_cache_entry(mapping, index);
	if (entry && !(entry & EVICTED_TAG)) {
		note_fault(&key, index);
		return;
	}
	event = begin_event(inode, &key, index, index, now);
	if (!event)
		return;
	event->kind = EVENT_FAULT;
	event->flags = FLAG_MMAP;
	event->past = entry & EVICTED_TAG ? PAST_EVICTED : PAST_UNKNOWN;
	bpf_ringbuf_submit(event, 0);
}

static __always_inline int on_page_fault(struct address_space *mapping, u64 index)
{
	struct inode *inode = mapping->host;

	if (!inode)
		return 0;
	report_fault(mapping, inode, index);
	if (drops_behind)
		follow_stream(inode, index, index, FLAG_MMAP);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_fault, struct address_space *mapping, unsigned long index)
{
	return on_page_fault(read_only(mapping), index);
}

#include "functions.bpf.h"
#include "block.bpf.h"

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (!is_last_exit(task))
		return 0;
	forget_task(tgid);
	/* The number may go to another process, which is no daemon. */
	for (int i = 0; i < DAEMONS; i++)
		__sync_val_compare_and_swap(&daemons[i], tgid, 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	u64 name[2] = {};

	BPF_CORE_READ_STR_INTO((char(*)[sizeof(name)])&name, task, comm);
	for (int i = 0; i < 2; i++)
		if (name[0] == own_names[i][0] && name[1] == own_names[i][1])
			may_be_new_daemon = 1;
	return 0;
}
