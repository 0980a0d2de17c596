/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose accesses count: those of all processes but us, or of one process and its descendants. */
#ifndef BOWWAVE_TASKS_H
#define BOWWAVE_TASKS_H

/* Set before loading. */
const volatile u32 our_tgid = 0;
const volatile bool only_tasks = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u32);
} tasks SEC(".maps"); /* tgid -> 1: that process and its descendants */

static __always_inline bool follows(u32 tgid)
{
	if (tgid == our_tgid)
		return false;
	return !only_tasks || bpf_map_lookup_elem(&tasks, &tgid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid), one = 1;

	if (only_tasks && from != to && bpf_map_lookup_elem(&tasks, &from))
		bpf_map_update_elem(&tasks, &to, &one, BPF_ANY);
	return 0;
}

/* Whether the last thread of the process exits. The first one exits early if another one calls exec. */
static __always_inline bool is_last_exit(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, live.counter) == 0;
}

static __always_inline void forget_task(u32 tgid)
{
	if (only_tasks)
		bpf_map_delete_elem(&tasks, &tgid);
}

#endif
