/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which remembered command the current process belongs to: it or one of its ancestors has that name. */
#ifndef BOWWAVE_REMEMBERED_H
#define BOWWAVE_REMEMBERED_H

#define REMEMBERED_COMMANDS 16
/* Programs that are started by a script of that name have few processes between. */
#define MOST_ANCESTORS 5

/* Set before loading: names, as words of `task_struct.comm`, and how many there are. */
const volatile u64 remembered_commands[REMEMBERED_COMMANDS][2] = {};
const volatile u32 remembered_count = 0;

static __noinline u32 rule_of(struct task_struct *task)
{
	u64 name[2] = {};

	BPF_CORE_READ_STR_INTO((char(*)[sizeof(name)])&name, task, comm);
	for (u32 i = 0; i < REMEMBERED_COMMANDS && i < remembered_count; i++) {
		if (remembered_commands[i][0] == name[0] && remembered_commands[i][1] == name[1])
			return i + 1;
	}
	return 0;
}

/* The number of the command, from 1; 0 if there is none. */
static __always_inline u32 remembered_rule(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 rule = 0;

	if (!remembered_count)
		return 0;
	for (int i = 0; i < MOST_ANCESTORS && task && !rule; i++) {
		task = BPF_CORE_READ(task, group_leader);
		rule = rule_of(task);
		task = BPF_CORE_READ(task, real_parent);
	}
	return rule;
}

#endif
