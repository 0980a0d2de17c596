// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The eBPF programs of `bowwave record`: send what programs read, call by call.
 *
 *   a read has its pages    mm_filemap_get_pages ---.
 *   a page fault            mm_filemap_fault -------+--> the thread's run --(it ends)--> TRACE_RUN --> ring
 *                           mm_filemap_map_pages ---+    (the page: page_fault_user, page_fault_kernel)
 *   a page is dirtied       writeback_dirty_folio --'
 *   a read lacks a page     page_cache_sync_ra, async_ra --> what the program has advised, and which pages it wants
 *   a page enters the cache mm_filemap_add_to_page_cache --> the thread's window --(it ends)--> TRACE_WINDOW --> ring
 *   a thread stops, runs    sched_switch -------------> how long it has waited; ends its run
 *   a disk gets a request   block_rq_issue, _complete --> TRACE_REQUEST --> ring (request.bpf.h)
 *
 * A run is one call, or several that wait for nothing and are made within one tick of the clock, while the thread goes
 * on: reads of one size that follow one another in a file, or faults at equal distances. A copy into a file has a run
 * for each part that it reads, and for each that it writes. So a program that goes through cached data costs a few
 * comparisons for each call, and one event for each tick. A run is kept in the thread's storage. It is sent when the
 * thread does something else, or stops: of a thread that runs when recording ends, the last tick is missing.
 *
 * A window is what the kernel brings into the cache at once. It ends where pages do not adjoin, and with the next one.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "page_cache.bpf.h"
#include "trace.h"
#include "call.bpf.h"
#include "tasks.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FMODE_RANDOM 0x1000
/* One tick of the slowest clock, 100 Hz. */
#define LONGEST_TICK_NS 10000000
/* The kernel maps cached pages in aligned blocks of 64 KiB (fault_around_bytes). */
#define AROUND_PAGES 16ULL

/* What is known of a thread. Files are compared by the address of their inode, and by its number, as addresses are used
 * again. */
struct thread {
	/* The run, if it has calls. */
	u32 calls;
	u32 op;
	u32 flags;
	u32 file;
	u64 call;	/* the number of its last call or fault */
	u64 pages;	/* of its first call */
	u64 begin;	/* pages */
	u64 end;
	u64 last_begin;	/* of its last call */
	s64 position;	/* in bytes, of its first call, or of the last one that shares a page */
	s64 step;	/* of faults: from one page to the next */
	u64 tick;
	u64 at_ns;
	u64 took_ns;
	bool is_waiting;	/* in its last call */
	/* The file of the last run. */
	struct inode *inode;
	u64 ino;
	u32 generation;
	bool is_named;		/* user space knows the thread */
	/* The last read, and the pages that its last batch still had to deliver. */
	struct inode *read_inode;
	u64 read_call;
	u64 batch_first;
	u64 batch_last;
	/* Waits of a read before it is seen: the kernel reports a batch of pages when all are there. */
	u64 waited_call;
	u64 waited_since_ns;
	/* What the program has advised, as of the last absent page. */
	struct inode *advised_inode;
	u32 advice;
	u64 address;		/* of its last fault */
	/* A mapped file, and the number of its first page less that of the page of memory where it is mapped. */
	struct inode *area_inode;
	u64 area_offset;
	/* The pages that a read or fault wants. The kernel may bring them into the cache next. */
	struct inode *wanted_inode;
	u64 wanted_first;
	u64 wanted_end;
	u64 wanted_doing;	/* what the thread did then */
	bool is_wanted_by_fault;
	/* The window: pages that were brought in, of which those from `window_first` on are not sent. */
	struct inode *window_inode;	/* 0 if there is none */
	u64 window_ino;
	u64 window_doing;
	u64 window_first;
	u64 window_end;
	u64 window_at_ns;
	u32 window_file;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct file_key {
	u64 ino;
	u32 dev;
	u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MOST_FILES);
	__type(key, struct file_key);
	__type(value, u32);
} files SEC(".maps"); /* numbers */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

u64 lost_calls;	/* for which the ring or `files` had no room, or no memory */
u64 lost_pages;	/* of windows, for the same reason */
u32 next_file;

/* User space looks at the ring ten times a second, and at once when it fills: to wake it for each event would cost more
 * than the event. */
static __always_inline u64 wakeup(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > RING_BYTES / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void lose(u64 calls)
{
	__sync_fetch_and_add(&lost_calls, calls);
}

#include "request.bpf.h"

/* Ends the run, if there is one. */
static __always_inline void send_run(struct thread *thread, struct task_struct *task, u64 now_ns)
{
	u64 lasted_ns = now_ns - thread->at_ns;
	struct trace_run *event;

	if (!thread->calls)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		lose(thread->calls);
		thread->calls = 0;
		return;
	}
	event->kind = TRACE_RUN;
	event->thread = task->pid;
	event->file = thread->file;
	event->calls = thread->calls;
	event->at_ns = thread->at_ns;
	event->took_ns = thread->took_ns;
	/* The time of the last call is not known. It was made within the tick. */
	event->lasted_ns = lasted_ns < LONGEST_TICK_NS ? lasted_ns : LONGEST_TICK_NS;
	event->first = thread->begin;
	event->end = thread->end;
	event->step = thread->step;
	event->op = thread->op;
	event->flags = thread->flags;
	bpf_ringbuf_submit(event, wakeup());
	thread->calls = 0;
}

static __always_inline bool name_thread(struct thread *thread, struct task_struct *task)
{
	struct trace_thread *event;

	if (thread->is_named)
		return true;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return false;
	event->kind = TRACE_THREAD;
	event->thread = task->pid;
	event->process = task->tgid;
	event->reserved = 0;
	BPF_CORE_READ_INTO(&event->name, task, comm);
	bpf_ringbuf_submit(event, wakeup());
	thread->is_named = true;
	return true;
}

/* Numbers a file and sends its name. The event has its place in the ring before others can know the number. */
static __always_inline u32 *add_file(struct inode *inode, struct file_key *key)
{
	struct trace_file *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	bool is_whole;
	u32 number;

	if (!event)
		return 0;
	number = __sync_fetch_and_add(&next_file, 1);
	event->kind = TRACE_FILE;
	event->file = number;
	event->bytes = inode->i_size;
	event->ino = key->ino;
	event->dev = key->dev;
	event->components = path_of(inode, event->component, PATH_COMPONENTS, &is_whole);
	event->is_whole = is_whole;
	/* Another thread may be faster. */
	if (bpf_map_update_elem(&files, key, &number, BPF_NOEXIST))
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(event, wakeup());
	return bpf_map_lookup_elem(&files, key);
}

static __always_inline u32 *number_of(struct inode *inode)
{
	struct file_key key = { .ino = inode->i_ino, .dev = inode->i_sb->s_dev, .generation = inode->i_generation };
	u32 *number = bpf_map_lookup_elem(&files, &key);

	return number ? number : add_file(inode, &key);
}

/* Makes this the file of the thread's next run. */
static __always_inline bool take_file(struct thread *thread, struct inode *inode)
{
	u32 *number;

	if (thread->inode == inode && thread->ino == inode->i_ino && thread->generation == inode->i_generation)
		return true;
	number = number_of(inode);
	if (!number)
		return false;
	thread->inode = inode;
	thread->ino = inode->i_ino;
	thread->generation = inode->i_generation;
	thread->file = *number;
	return true;
}

/* The thread, if its accesses to this file are recorded. */
static __always_inline struct thread *recorded(struct task_struct *task, struct inode *inode)
{
	struct thread *thread;

	if (!is_on_device(inode) || !follows(task->tgid))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		lose(1);
	return thread;
}

/* Sends the last run and begins one with a call that reads [begin, end). Returns whether that is possible. */
static __always_inline bool begin_run(struct thread *thread, struct task_struct *task, struct inode *inode, u32 op,
				      u64 call, u64 begin, u64 end, u64 now_ns)
{
	send_run(thread, task, now_ns);
	if (!name_thread(thread, task) || !take_file(thread, inode)) {
		lose(1);
		return false;
	}
	thread->calls = 1;
	thread->op = op;
	thread->flags = 0;
	thread->call = call;
	thread->pages = end - begin;
	thread->begin = begin;
	thread->end = end;
	thread->last_begin = begin;
	thread->step = 0;
	thread->tick = bpf_jiffies64();
	thread->at_ns = now_ns;
	thread->took_ns = 0;
	thread->is_waiting = false;
	if (thread->advised_inode == inode)
		thread->flags = thread->advice;
	thread->advised_inode = 0;
	return true;
}

/* Whether this call begins behind the last one of the run within the run's last page, which both read. */
static __always_inline bool shares_page(struct thread *thread, struct task_struct *task, struct inode *inode)
{
	s64 position = position_of(task, inode);

	if (position <= thread->position || !(position & ((1 << PAGE_SHIFT) - 1)))
		return false;
	thread->position = position;
	return true;
}

/* Whether this is a new call that goes on where the run ends, like the others. It may share a page with the last one
 * and have a page more or less: programs do not always read whole pages. */
static __always_inline bool joins_run(struct thread *thread, struct task_struct *task, struct inode *inode, u64 first,
				      u64 last)
{
	u64 call = call_of(task);

	if (thread->inode != inode || thread->ino != inode->i_ino || thread->op != OP_READ || !thread->calls)
		return false;
	if (thread->call == call || thread->took_ns || thread->tick != bpf_jiffies64())
		return false;
	if (first + 1 - thread->end > 1 || last + 1 - first + 1 - thread->pages > 2 || last >= end_of(inode))
		return false;
	if (first < thread->end && !shares_page(thread, task, inode))
		return false;
	thread->calls++;
	thread->call = call;
	thread->end = last + 1;
	thread->last_begin = first;
	thread->read_call = call;
	thread->batch_first = first;
	thread->batch_last = last;
	return true;
}

/* Whether these pages belong to the call that the thread has reported before. */
static __always_inline bool continues_call(struct thread *thread, struct task_struct *task, struct inode *inode,
					   u64 call, u64 first, u64 last)
{
	if (thread->read_inode != inode || thread->read_call != call)
		return false;
	/* The next batch of the same pages. */
	if (last == thread->batch_last && first > thread->batch_first)
		return true;
	if (!is_in_piping_call(task))
		/* Not a call that the kernel counts, as with io_uring. */
		return false;
	/* What the call has written to another file has ended the run. */
	if (!thread->calls || thread->op != OP_READ || thread->inode != inode)
		return false;
	if (thread->end <= last)
		thread->end = last + 1;
	return true;
}

/* The first page of a new run that has got to page `first`. */
static __always_inline u64 start_of_run(struct thread *thread, struct task_struct *task, struct inode *inode, u64 call,
					u64 first)
{
	if (thread->read_inode != inode || thread->read_call != call || !is_in_piping_call(task))
		return start_of(task, inode, first);
	/* A part of a copy begins where the last one has ended. */
	return thread->batch_last < first ? thread->batch_last + 1 : first;
}

static __always_inline int on_other_read(struct task_struct *task, struct inode *inode, u64 first, u64 last)
{
	u64 call = call_of(task), now_ns, end, begin;
	struct thread *thread = recorded(task, inode);
	bool has_waited;

	if (!thread)
		return 0;
	/* A program may ask for more than the file has. */
	end = end_of(inode);
	if (last >= end)
		last = end ? end - 1 : 0;
	if (!continues_call(thread, task, inode, call, first, last)) {
		now_ns = bpf_ktime_get_ns();
		begin = start_of_run(thread, task, inode, call, first);
		has_waited = thread->waited_since_ns && thread->waited_call == call;
		if (begin_run(thread, task, inode, OP_READ, call, begin, last + 1, now_ns) && has_waited) {
			thread->at_ns = thread->waited_since_ns;
			thread->took_ns = now_ns - thread->waited_since_ns;
		}
		thread->position = position_of(task, inode);
		thread->waited_since_ns = 0;
	}
	thread->read_inode = inode;
	thread->read_call = call;
	thread->batch_first = first;
	thread->batch_last = last;
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(on_get_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread && joins_run(thread, task, mapping->host, first, last))
		return 0;
	return on_other_read(task, mapping->host, first, last);
}

#include "window.bpf.h"

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_fault, struct address_space *mapping, unsigned long index)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = recorded(task, mapping->host);
	u64 fault = fault_of(task);

	if (!thread)
		return 0;
	if (!is_recorded(thread, fault))
		begin_run(thread, task, mapping->host, OP_FAULT, fault, index, index + 1, bpf_ktime_get_ns());
	want(thread, task, mapping->host, index, index + 1, true);
	return 0;
}

static __always_inline int note_address(u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (!thread && follows(task->tgid))
		thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (thread)
		thread->address = address;
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_user_fault, unsigned long address)
{
	return note_address(address);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_kernel_fault, unsigned long address)
{
	return note_address(address);
}

struct place {
	u64 address;
	u64 page;
	bool is_known;
};

static long look_up(struct task_struct *task, struct vm_area_struct *area, void *data)
{
	struct place *place = data;

	place->page = ((place->address - area->vm_start) >> PAGE_SHIFT) + area->vm_pgoff;
	place->is_known = true;
	return 0;
}

/* The page of the file at which the thread has faulted, if the kernel has mapped a block around it that begins with
 * page `first`. Only the first fault in a mapping has to be looked up. */
static __always_inline u64 faulting_page(struct thread *thread, struct task_struct *task, struct inode *inode, u64 first)
{
	u64 number = thread->address >> PAGE_SHIFT;
	struct place place = { .address = thread->address, .page = first };

	if (thread->area_inode == inode && (number & ~(AROUND_PAGES - 1)) + thread->area_offset == first)
		return number + thread->area_offset;
	/* This fails, rarely, while another thread changes the mappings. */
	bpf_find_vma(task, place.address, look_up, &place, 0);
	if (place.is_known) {
		thread->area_inode = inode;
		thread->area_offset = place.page - number;
	}
	return place.page;
}

/* Whether this new fault is as far from the last one of the run as that is from the one before. */
static __always_inline bool joins_faults(struct thread *thread, struct inode *inode, u64 fault, u64 page)
{
	if (thread->inode != inode || thread->ino != inode->i_ino || thread->op != OP_FAULT || !thread->calls)
		return false;
	if (thread->call == fault || thread->took_ns || thread->tick != bpf_jiffies64())
		return false;
	if (thread->calls == 1)
		thread->step = page - thread->begin;
	else if ((s64)(page - thread->last_begin) != thread->step)
		return false;
	thread->calls++;
	thread->call = fault;
	thread->last_begin = page;
	return true;
}

/* The kernel has mapped cached pages around a fault, which is over if its own page is among them. */
SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(on_map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = recorded(task, mapping->host);
	u64 fault = fault_of(task), page;

	if (!thread || is_recorded(thread, fault))
		return 0;
	page = faulting_page(thread, task, mapping->host, first);
	/* Otherwise mm_filemap_fault comes next. */
	if (page < first || page > last || joins_faults(thread, mapping->host, fault, page))
		return 0;
	begin_run(thread, task, mapping->host, OP_FAULT, fault, page, page + 1, bpf_ktime_get_ns());
	return 0;
}

/* A page that is dirty already is not reported. Pages that follow one another within a tick are one write. */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(on_dirty, struct folio *folio, struct address_space *mapping)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = mapping ? mapping->host : 0;
	u64 first = folio->index, end = first + pages_of(folio);
	struct thread *thread = recorded(task, inode);

	if (!thread)
		return 0;
	if (thread->calls && thread->op == OP_WRITE && thread->inode == inode && thread->ino == inode->i_ino &&
	    thread->end == first && thread->tick == bpf_jiffies64())
		thread->end = end;
	else
		begin_run(thread, task, inode, OP_WRITE, 0, first, end, bpf_ktime_get_ns());
	return 0;
}

/* Whether the last call of the thread's run goes on. */
static __always_inline bool is_in_last_call(struct thread *thread, struct task_struct *task)
{
	if (!thread->calls || (task->flags & PF_EXITING))
		return false;
	if (thread->op == OP_FAULT)
		return thread->call == fault_of(task);
	return thread->op == OP_READ && thread->call == call_of(task) && is_in_reading_call(task);
}

/* Notes what the program has advised for the open file through which a page is absent. */
static __always_inline int note_advice(struct inode *inode, struct file_ra_state *ra)
{
	struct file *file = (void *)ra - bpf_core_field_offset(struct file, f_ra);
	struct task_struct *task = bpf_get_current_task_btf();
	u32 advice = FLAG_ADVICE, window = ra->ra_pages;
	struct thread *thread = recorded(task, inode);

	if (!thread || BPF_CORE_READ(file, f_inode) != inode)
		return 0;
	if (BPF_CORE_READ(file, f_mode) & FMODE_RANDOM)
		advice |= FLAG_RANDOM;
	/* That doubles the window of the open file. */
	else if (window && window == 2 * inode->i_sb->s_bdi->ra_pages)
		advice |= FLAG_SEQUENTIAL;
	if (ra->prev_pos < 0)
		advice |= FLAG_OPENED;
	if (thread->inode == inode && is_in_last_call(thread, task)) {
		/* Faults do not count as reads through the open file. */
		if (thread->op == OP_FAULT)
			advice &= ~FLAG_OPENED;
		thread->flags |= advice;
		return 0;
	}
	thread->advised_inode = inode;
	thread->advice = advice;
	return 0;
}

SEC("tp_btf/page_cache_sync_ra")
int BPF_PROG(on_sync_ra, struct inode *inode, unsigned long first, struct file_ra_state *ra, unsigned long pages)
{
	note_wanted(inode, first, pages);
	return note_advice(inode, ra);
}

SEC("tp_btf/page_cache_async_ra")
int BPF_PROG(on_async_ra, struct inode *inode, unsigned long first, struct file_ra_state *ra, unsigned long pages)
{
	note_wanted(inode, first, pages);
	return note_advice(inode, ra);
}

/* Makes the last call of the run a run of its own, since calls that wait are not merged. */
static __always_inline void split_run(struct thread *thread, struct task_struct *task, u64 now_ns)
{
	u64 begin = thread->last_begin, end = thread->op == OP_FAULT ? begin + 1 : thread->end;
	u32 flags = thread->flags;

	if (thread->calls < 2)
		return;
	thread->calls--;
	thread->end = begin;
	send_run(thread, task, now_ns);
	thread->calls = 1;
	thread->begin = begin;
	thread->end = end;
	thread->step = 0;
	thread->at_ns = now_ns;
	thread->flags = flags;
}

/* The thread stops. Creates no storage, for which the scheduler is not the place. */
static __always_inline void stop(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	u64 now_ns, call;

	if (!thread)
		return;
	send_window(thread, task);
	if (!BPF_CORE_READ_BITFIELD(task, in_iowait)) {
		if (thread->calls && !is_in_last_call(thread, task))
			send_run(thread, task, bpf_ktime_get_ns());
		return;
	}
	now_ns = bpf_ktime_get_ns();
	if (is_in_last_call(thread, task)) {
		split_run(thread, task, now_ns);
		thread->is_waiting = true;
		return;
	}
	send_run(thread, task, now_ns);
	call = call_of(task);
	if (!is_in_reading_call(task) || (thread->waited_since_ns && thread->waited_call == call))
		return;
	thread->waited_call = call;
	thread->waited_since_ns = now_ns;
}

/* The thread has waited and runs again. */
static __always_inline void resume(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (!thread || !thread->is_waiting || !thread->calls)
		return;
	thread->is_waiting = false;
	thread->took_ns = bpf_ktime_get_ns() - thread->at_ns;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool is_preempted, struct task_struct *before, struct task_struct *next)
{
	stop(before);
	if (BPF_CORE_READ_BITFIELD(next, in_iowait))
		resume(next);
	return 0;
}

/* The thread becomes another program. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (!thread)
		return 0;
	send_run(thread, task, bpf_ktime_get_ns());
	send_window(thread, task);
	thread->is_named = false;
	return 0;
}

/* Before anybody may learn that the process has ended, its last run is sent. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread) {
		send_run(thread, task, bpf_ktime_get_ns());
		send_window(thread, task);
	}
	if (is_last_exit(task))
		forget_task(task->tgid);
	return 0;
}
