/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel brings into the cache for a thread: a part of trace.bpf.c. */
#ifndef BOWWAVE_WINDOW_H
#define BOWWAVE_WINDOW_H

/* A number that changes when a call or a fault of the thread ends. */
static __always_inline u64 doing_of(struct task_struct *task)
{
	return call_of(task) + fault_of(task);
}

/* Whether the thread's run is this fault, which is tried again after it has waited. */
static __always_inline bool is_recorded(struct thread *thread, u64 fault)
{
	return thread->calls && thread->op == OP_FAULT && thread->call == fault;
}

/* Sends the window's pages. More of them may follow. */
static __always_inline void send_window(struct thread *thread, struct task_struct *task)
{
	u64 first = thread->window_first, end = thread->window_end, from = 0, to = 0;
	struct trace_window *event;
	bool is_wanted;

	if (!thread->window_inode || first >= end)
		return;
	thread->window_first = end;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost_pages, end - first);
		return;
	}
	is_wanted = thread->wanted_inode == thread->window_inode && thread->wanted_doing == thread->window_doing;
	if (is_wanted) {
		from = thread->wanted_first > first ? thread->wanted_first : first;
		to = thread->wanted_end < end ? thread->wanted_end : end;
	}
	event->kind = TRACE_WINDOW;
	event->thread = task->pid;
	event->file = thread->window_file;
	event->reason = !is_wanted ? ON_REQUEST : thread->is_wanted_by_fault ? FOR_FAULT : FOR_READ;
	event->at_ns = thread->window_at_ns;
	event->first = first;
	event->end = end;
	event->asked_first = from < to ? from : first;
	event->asked_end = from < to ? to : first;
	bpf_ringbuf_submit(event, wakeup());
}

/* The thread wants these pages. What the kernel brings in next is another window. */
static __always_inline void want(struct thread *thread, struct task_struct *task, struct inode *inode, u64 first,
				 u64 end, bool is_fault)
{
	send_window(thread, task);
	thread->window_inode = 0;
	thread->wanted_inode = inode;
	thread->wanted_first = first;
	thread->wanted_end = end;
	thread->wanted_doing = doing_of(task);
	thread->is_wanted_by_fault = is_fault;
}

/* A read lacks a page, or has come to a mark. A fault wants one page, which is known. */
static __always_inline void note_wanted(struct inode *inode, u64 first, u64 pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = recorded(task, inode);

	if (!thread)
		return;
	if (is_recorded(thread, fault_of(task)))
		want(thread, task, inode, thread->last_begin, thread->last_begin + 1, true);
	else
		want(thread, task, inode, first, first + pages, false);
}

static __always_inline bool begin_window(struct thread *thread, struct task_struct *task, struct inode *inode,
					 u64 first)
{
	u32 *number;

	send_window(thread, task);
	thread->window_inode = 0;
	number = name_thread(thread, task) ? number_of(inode) : 0;
	if (!number)
		return false;
	thread->window_inode = inode;
	thread->window_ino = inode->i_ino;
	thread->window_doing = doing_of(task);
	thread->window_first = first;
	thread->window_end = first;
	thread->window_at_ns = bpf_ktime_get_ns();
	thread->window_file = *number;
	return true;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_add, struct folio *folio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = folio->mapping->host;
	struct thread *thread = recorded(task, inode);
	u64 first, end;

	if (!thread)
		return 0;
	/* What a writer needs is not read ahead. But it may fault on a mapped file that it writes to another one. */
	if (is_in_writing_call(task) && !is_recorded(thread, fault_of(task)))
		return 0;
	if (!pages_within(inode, folio, &first, &end))
		return 0;
	if (thread->window_inode != inode || thread->window_ino != inode->i_ino || thread->window_end != first ||
	    thread->window_doing != doing_of(task)) {
		if (!begin_window(thread, task, inode, first)) {
			__sync_fetch_and_add(&lost_pages, end - first);
			return 0;
		}
	}
	thread->window_end = end;
	return 0;
}

#endif
