/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which remembered command the current process belongs to: it or one of its ancestors, with the same user all
 * the way, has that name. */
#ifndef BOWWAVE_REMEMBERED_H
#define BOWWAVE_REMEMBERED_H

#define REMEMBERED_COMMANDS 16
/* Programs that are started by a script of that name have few processes between. */
#define MOST_ANCESTORS 5
/* A process of that name begins a start only within 5 s of its own beginning. */
#define FRESH_NS 5000000000ULL

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

/* Whose programs: a user's own. A program with the rights of another one's, as after setuid, is nobody's. */
static __always_inline bool is_of(struct task_struct *task, u32 uid)
{
	return BPF_CORE_READ(task, cred, uid.val) == uid && BPF_CORE_READ(task, cred, euid.val) == uid;
}

/* The number of the command, from 1; 0 if there is none. RULE_FRESH is added if its process has just begun: only then
 * may a start begin. */
static __always_inline u32 remembered_rule(u64 now)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 rule = 0, uid;
	u64 age;

	if (!remembered_count)
		return 0;
	uid = BPF_CORE_READ(task, cred, uid.val);
	for (int i = 0; i < MOST_ANCESTORS && task; i++) {
		task = BPF_CORE_READ(task, group_leader);
		if (!is_of(task, uid))
			return 0;
		rule = rule_of(task);
		if (rule) {
			age = now - BPF_CORE_READ(task, start_time);
			return age < FRESH_NS ? rule | RULE_FRESH : rule;
		}
		task = BPF_CORE_READ(task, real_parent);
	}
	return 0;
}

#endif
