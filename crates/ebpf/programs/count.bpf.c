// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The eBPF programs of `bowwave top`: count how programs read files, and send no events.
 *
 *   a read has its pages    mm_filemap_get_pages ------------------ reads, pages
 *   a page fault            mm_filemap_map_pages, mm_filemap_fault  faults, pages, missing pages
 *   a read lacks a page     page_cache_sync_ra, async_ra ---------- which pages it wants
 *   a page enters the cache mm_filemap_add_to_page_cache ---------- brought pages, missing pages
 *   a thread waits          sched_switch -------------------------- stalls, and how long they took
 *
 * The first program and `count_mapping` also run for cached pages. User space attaches them for a part of the time if
 * there are many such accesses (crates/top/src/rhythm.rs); the others stay attached.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "page_cache.bpf.h"
#include "count.h"
#include "call.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define O_DIRECT 040000

/* What is known of a thread. Files are compared by the address of their inode. */
struct thread {
	struct inode *inode;		/* the file of its last read */
	u64 call;			/* the number of that read */
	u64 first;			/* the pages that its last batch still had to deliver */
	u64 last;
	struct inode *wanted_inode;	/* the file of a read that lacks pages */
	struct count_key wanted;	/* its process and file */
	u64 wanted_call;		/* the number of that read */
	u64 wanted_first;		/* the pages that it asks for */
	u64 wanted_end;
	u64 fault;			/* the number of its last fault, from 1 */
	struct count_key faulting;	/* the process and file of that fault */
	struct count_key waiting;	/* the process and file for which it waits */
	u64 waits_since_ns;		/* 0 if it does not wait */
	bool is_counted_missing;	/* the page of its last fault */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct count_key);
	__type(value, struct counts);
} counts SEC(".maps");

/* With inode 0: what has no room in `counts`, for each process and file system. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct count_key);
	__type(value, struct counts);
} rest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct count_key);
	__type(value, struct stalls);
} stalls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct file_name_key);
	__type(value, struct file_name);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct process);
} processes SEC(".maps"); /* by tgid */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct file_name);
} scratch SEC(".maps");

u64 uncounted;	/* accesses and stalls for which there was no room at all, or no memory */
u64 seen[PROCESSORS * SEEN_WORDS]; /* runs of the programs that also see cached pages, by processor */
/* Whether accesses to cached pages are seen now. */
u32 sees_cached;

static __always_inline void describe_process(struct task_struct *task, u32 tgid)
{
	struct process process = { .cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id) };

	BPF_CORE_READ_INTO(&process.name, task, group_leader, comm);
	bpf_map_update_elem(&processes, &tgid, &process, BPF_ANY);
}

/* Describes the process and the names of the file, when the first access of the one to the other is counted. */
static __always_inline void describe(struct task_struct *task, struct inode *inode, struct count_key *key)
{
	struct file_name_key name_key = { .ino = key->ino, .dev = key->dev };
	struct file_name *name;
	bool is_whole;
	u32 zero = 0;

	describe_process(task, key->tgid);
	name = bpf_map_lookup_elem(&scratch, &zero);
	if (!name)
		return;
	name->components = path_of(inode, name->component, NAME_COMPONENTS, &is_whole);
	name->is_whole = is_whole;
	if (name->components)
		bpf_map_update_elem(&names, &name_key, name, BPF_ANY);
}

static __always_inline struct counts *counts_of(struct task_struct *task, struct inode *inode, struct count_key *key)
{
	struct counts *found = bpf_map_lookup_elem(&counts, key), fresh = {};
	struct count_key rest_key = *key;

	if (found)
		return found;
	if (!bpf_map_update_elem(&counts, key, &fresh, BPF_NOEXIST))
		describe(task, inode, key);
	found = bpf_map_lookup_elem(&counts, key);
	if (found)
		return found;
	rest_key.ino = 0;
	found = bpf_map_lookup_elem(&rest, &rest_key);
	if (found)
		return found;
	bpf_map_update_elem(&rest, &rest_key, &fresh, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&rest, &rest_key);
	if (!found)
		__sync_fetch_and_add(&uncounted, 1);
	return found;
}

/* Of a regular file that is not in memory only. */
static __always_inline bool key_of(struct task_struct *task, struct inode *inode, struct count_key *key)
{
	if (!is_on_device(inode))
		return false;
	key->ino = inode->i_ino;
	key->dev = inode->i_sb->s_dev;
	key->tgid = task->tgid;
	return true;
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		__sync_fetch_and_add(&uncounted, 1);
	return thread;
}

/* The bin of a latency: 0 below 2 microseconds, 1 below 4, and so on. */
static __always_inline u32 bin_of(u64 ns)
{
	u64 us = ns / 1000;
	u32 bin = 0;

	for (int shift = 16; shift; shift >>= 1) {
		if (us >> (bin + shift))
			bin += shift;
	}
	return bin < LATENCY_BINS ? bin : LATENCY_BINS - 1;
}

/* The stalls of a process and file; 0 if there is no room. */
static __always_inline struct stalls *stalls_of(struct task_struct *task, struct count_key *key)
{
	struct stalls *found = bpf_map_lookup_elem(&stalls, key), fresh = {};

	if (found)
		return found;
	if (!bpf_map_update_elem(&stalls, key, &fresh, BPF_NOEXIST))
		describe_process(task, key->tgid);
	found = bpf_map_lookup_elem(&stalls, key);
	if (!found)
		__sync_fetch_and_add(&uncounted, 1);
	return found;
}

/* The first page of [first, last] that belongs to a new call, or `last + 1` if the current one only goes on. */
static __always_inline u64 new_part(struct thread *thread, struct task_struct *task, struct inode *inode, u64 call,
				    u64 first, u64 last, bool *is_new_call)
{
	*is_new_call = thread->inode != inode || thread->call != call;
	if (*is_new_call)
		return start_of(task, inode, first);
	/* The next batch of the same pages. */
	if (last == thread->last && first > thread->first)
		return last + 1;
	if (is_in_piping_call(task))
		return thread->last + 1;
	/* Not a call that the kernel counts, as with io_uring. */
	*is_new_call = true;
	return first;
}

/* Counts how a read or fault of these pages lies to the one before of the same process and file. Each processor knows
 * its own one before, so one access counts as random when a thread moves to another processor. */
static __always_inline void count_step(struct counts *counts, u64 first, u64 end)
{
	s64 step = first - counts->first;

	if (!counts->end) {
		counts->first = first;
	} else if (step) {
		if (step > 0 && first <= counts->end)
			counts->forward++;
		else if (step < 0 && end >= counts->first)
			counts->backward++;
		else if (step == counts->step)
			counts->strided++;
		else
			counts->random++;
		counts->first = first;
		counts->step = step;
	}
	counts->end = end;
}

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(count_read, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = mapping->host;
	u64 end, from, call = call_of(task);
	struct count_key key = {};
	struct thread *thread;
	struct counts *counts;
	bool is_new_call;

	seen[(bpf_get_smp_processor_id() & (PROCESSORS - 1)) * SEEN_WORDS]++;
	if (!key_of(task, inode, &key))
		return 0;
	thread = thread_of(task);
	counts = counts_of(task, inode, &key);
	if (!thread || !counts)
		return 0;
	/* A program may ask for more than the file has. */
	end = end_of(inode);
	if (last >= end)
		last = end ? end - 1 : 0;
	from = new_part(thread, task, inode, call, first, last, &is_new_call);
	if (is_new_call) {
		counts->reads++;
		count_step(counts, from, last + 1);
	} else if (counts->end == thread->last + 1) {
		/* The call goes on, and is the last access that this processor has seen. */
		counts->end = last + 1;
	}
	if (from <= last)
		counts->pages += last - from + 1;
	thread->inode = inode;
	thread->call = call;
	thread->first = first;
	thread->last = last;
	return 0;
}

/* An event of the fault that the thread is in, about the pages [first, end). Counts the fault at its first event. */
static __always_inline int on_fault(struct address_space *mapping, u64 first, u64 end, bool is_missing)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = mapping->host;
	u64 fault = fault_of(task);
	struct count_key key = {};
	struct thread *thread;
	struct counts *counts;

	if (!key_of(task, inode, &key))
		return 0;
	thread = thread_of(task);
	counts = counts_of(task, inode, &key);
	if (!thread || !counts)
		return 0;
	if (thread->fault != fault) {
		thread->fault = fault;
		thread->faulting = key;
		thread->is_counted_missing = false;
		if (sees_cached) {
			counts->faults++;
			counts->pages++;
			count_step(counts, first, end);
		}
	}
	if (is_missing && !thread->is_counted_missing) {
		thread->is_counted_missing = true;
		counts->missing++;
	}
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(count_mapping, struct address_space *mapping, unsigned long first, unsigned long last)
{
	seen[(bpf_get_smp_processor_id() & (PROCESSORS - 1)) * SEEN_WORDS]++;
	return on_fault(mapping, first, last + 1, false);
}

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(count_fault, struct address_space *mapping, unsigned long index)
{
	u64 entry = page_cache_entry(mapping, index);

	return on_fault(mapping, index, index + 1, !entry || (entry & EVICTED_TAG));
}

/* Notes which pages a read wants. The kernel brings them into the cache next, and more. A fault wants one page, which
 * count_fault has counted. */
static __always_inline int note_wanted(struct inode *inode, u64 first, u64 pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_of(task);
	struct count_key key = {};

	if (!thread || thread->fault == fault_of(task) || !key_of(task, inode, &key))
		return 0;
	thread->wanted_inode = inode;
	thread->wanted = key;
	thread->wanted_call = call_of(task);
	thread->wanted_first = first;
	thread->wanted_end = first + pages;
	return 0;
}

SEC("tp_btf/page_cache_sync_ra")
int BPF_PROG(note_absent, struct inode *inode, unsigned long first, struct file_ra_state *ra, unsigned long pages)
{
	return note_wanted(inode, first, pages);
}

SEC("tp_btf/page_cache_async_ra")
int BPF_PROG(note_mark, struct inode *inode, unsigned long first, struct file_ra_state *ra, unsigned long pages)
{
	return note_wanted(inode, first, pages);
}

/* How many of these pages a read has asked for, before they were in the cache. */
static __always_inline u64 wanted_of(struct thread *thread, struct task_struct *task, struct inode *inode, u64 first,
				     u64 end)
{
	if (thread->wanted_inode != inode || thread->wanted_call != call_of(task))
		return 0;
	if (first < thread->wanted_first)
		first = thread->wanted_first;
	if (end > thread->wanted_end)
		end = thread->wanted_end;
	return first < end ? end - first : 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(count_brought, struct folio *folio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = folio->mapping->host;
	struct count_key key = {};
	struct thread *thread;
	struct counts *counts;
	u64 first, end;

	if (!key_of(task, inode, &key) || is_in_writing_call(task))
		return 0;
	if (!pages_within(inode, folio, &first, &end))
		return 0;
	counts = counts_of(task, inode, &key);
	if (!counts)
		return 0;
	counts->brought += end - first;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (thread)
		counts->missing += wanted_of(thread, task, inode, first, end);
	return 0;
}

/* The process and file for which a thread waits; false if it is not for pages that it reads. */
static __always_inline bool is_waiting_for(struct task_struct *task, struct thread *thread, struct count_key *key)
{
	bool is_for_others = task->flags & (PF_KTHREAD | PF_IO_WORKER), lacks_pages;
	struct inode *inode;
	struct file *file;
	u64 magic;

	if (thread->fault == fault_of(task)) {
		*key = thread->faulting;
		return true;
	}
	lacks_pages = thread->wanted_inode && thread->wanted_call == call_of(task);
	file = is_for_others ? 0 : file_read_by(task);
	if (file && (BPF_CORE_READ(file, f_flags) & O_DIRECT))
		return false;
	if (lacks_pages && (file || is_for_others)) {
		*key = thread->wanted;
		return true;
	}
	if (!file)
		return false;
	inode = BPF_CORE_READ(file, f_inode);
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG || is_in_memory(magic))
		return false;
	/* The pages belong to a file of a layer: most likely the one of which pages were missing last. */
	if (magic == OVERLAYFS_MAGIC) {
		*key = thread->wanted;
		return thread->wanted_inode;
	}
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->tgid = BPF_CORE_READ(task, tgid);
	return true;
}

/* Creates no storage, for which the scheduler is not the place. */
static __always_inline void begin_wait(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct count_key key = {};
	struct stalls *stalls;

	if (!thread)
		return;
	thread->waits_since_ns = 0;
	if (!is_waiting_for(task, thread, &key))
		return;
	stalls = stalls_of(task, &key);
	if (!stalls)
		return;
	thread->waiting = key;
	thread->waits_since_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&stalls->since_ns, thread->waits_since_ns);
	__sync_fetch_and_add(&stalls->waiting, 1);
}

static __always_inline void end_wait(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct count_key key;
	struct stalls *stalls;
	u64 ns;

	if (!thread || !thread->waits_since_ns)
		return;
	key = thread->waiting;
	stalls = stalls_of(task, &key);
	if (stalls) {
		ns = bpf_ktime_get_ns() - thread->waits_since_ns;
		/* User space may have removed the entry, and this is another one. */
		if (stalls->waiting) {
			__sync_fetch_and_add(&stalls->waiting, -1);
			__sync_fetch_and_add(&stalls->since_ns, -thread->waits_since_ns);
		}
		__sync_fetch_and_add(&stalls->ns, ns);
		__sync_fetch_and_add(&stalls->latency[bin_of(ns) & (LATENCY_BINS - 1)], 1);
	}
	thread->waits_since_ns = 0;
	/* Calls of these are not numbered, so nothing tells when their read is over. */
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		thread->wanted_inode = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(count_wait, bool is_preempted, struct task_struct *before, struct task_struct *next)
{
	if (BPF_CORE_READ_BITFIELD(before, in_iowait))
		begin_wait(before);
	if (BPF_CORE_READ_BITFIELD(next, in_iowait))
		end_wait(next);
	return 0;
}
