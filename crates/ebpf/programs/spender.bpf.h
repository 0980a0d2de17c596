/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose budget of events the current task uses, and how much of it is left. Nobody can use the budgets of several
 * spenders: not with the user ids of a user namespace, nor in cgroups that they make.
 *
 *   outside of namespaces                      the user, in the service or session
 *   in a user namespace of a user's            who has made the outermost one, in the service or session
 *   in a user or PID namespace of root's       everything in the innermost cgroup that root has made: a container
 */
#ifndef BOWWAVE_SPENDER_H
#define BOWWAVE_SPENDER_H

/* The cgroup level of services and users: below system.slice and user.slice. */
#define SESSION_LEVEL 2
/* Most levels that are searched for a container's cgroup. Kubernetes has it at level 4. */
#define MOST_LEVELS 16
/* Most levels of user namespaces: the kernel allows 32. */
#define MOST_USER_NAMESPACES 33
/* A token pays for one event; may_report says why there are so many. */
#define TOKEN_NS 50000
#define MOST_TOKENS 4096

struct spender {
	u64 cgroup;
	u32 uid;	/* 0 of a container */
	u32 is_container;
};

struct bucket {
	u64 at_ns;	/* up to when tokens were earned */
	s64 tokens;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct spender);
	__type(value, struct bucket);
} buckets SEC(".maps");

/* On the way from the root of the cgroups to a task's own. */
struct cgroup_path {
	void **cgroups;
	u64 id;
};

/* Goes one level down, unless the cgroup there is not root's. */
static long follow_cgroup(u64 level, void *data)
{
	struct cgroup_path *path = data;
	struct kernfs_iattrs *attributes;
	struct cgroup *at = 0;

	if (bpf_probe_read_kernel(&at, sizeof(at), path->cgroups + level))
		return 1;
	attributes = BPF_CORE_READ(at, kn, iattr);
	if (attributes && BPF_CORE_READ(attributes, ia_uid.val))
		return 1;
	path->id = BPF_CORE_READ(at, kn, id);
	return 0;
}

/* The innermost cgroup of the task that root has made: it and those above it belong to root. */
static __always_inline u64 cgroup_of_roots(struct task_struct *task)
{
	struct cgroup *own = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	struct cgroup_path path = { .cgroups = (void *)own + bpf_core_field_offset(struct cgroup, ancestors) };
	u32 levels = BPF_CORE_READ(own, level) + 1;

	bpf_loop(levels < MOST_LEVELS ? levels : MOST_LEVELS, follow_cgroup, &path, 0);
	return path.id;
}

/* The user namespace that owns the task's outermost PID namespace, if it is in one; else the task's own. */
static __always_inline struct user_namespace *user_namespace_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct pid_namespace *outermost = 0;
	struct upid *second;

	if (BPF_CORE_READ(pid, level) == 0)
		return BPF_CORE_READ(task, cred, user_ns);
	second = (void *)pid + bpf_core_field_offset(struct pid, numbers) + bpf_core_type_size(struct upid);
	outermost = BPF_CORE_READ(second, ns);
	return BPF_CORE_READ(outermost, user_ns);
}

/* Goes one level up, unless this is an outermost namespace. */
static long leave_namespace(u64 number, void *data)
{
	struct user_namespace **namespace = data;

	if (BPF_CORE_READ(*namespace, level) <= 1)
		return 1;
	*namespace = BPF_CORE_READ(*namespace, parent);
	return 0;
}

static __always_inline u32 maker_of(struct user_namespace *namespace)
{
	bpf_loop(MOST_USER_NAMESPACES, leave_namespace, &namespace, 0);
	return BPF_CORE_READ(namespace, owner.val);
}

static __always_inline struct spender current_spender(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct user_namespace *namespace = user_namespace_of(task);
	bool has_users = BPF_CORE_READ(namespace, level) > 0;
	bool has_processes = BPF_CORE_READ(task, thread_pid, level) > 0;
	struct spender spender = {};

	if (has_users)
		spender.uid = maker_of(namespace);
	else if (!has_processes)
		spender.uid = bpf_get_current_uid_gid();
	spender.is_container = (has_users || has_processes) && spender.uid == 0;
	spender.cgroup = spender.is_container ? cgroup_of_roots(task) :
						bpf_get_current_ancestor_cgroup_id(SESSION_LEVEL);
	return spender;
}

/* Whether a spender may report one more event. A spender may report 20,000 per second, and 4096 at once. That is
 * less than half of the ring, so nobody fills it for others. */
static __always_inline bool may_report(struct spender *spender, u64 now)
{
	struct bucket *bucket = bpf_map_lookup_elem(&buckets, spender);
	struct bucket fresh = { .at_ns = now, .tokens = MOST_TOKENS - 1 };
	u64 earned;

	if (!bucket) {
		bpf_map_update_elem(&buckets, spender, &fresh, BPF_ANY);
		return true;
	}
	/* Not atomic: processors that do this at once may earn a few tokens twice. */
	earned = now > bucket->at_ns ? (now - bucket->at_ns) / TOKEN_NS : 0;
	if (bucket->tokens + (s64)earned >= MOST_TOKENS) {
		bucket->tokens = MOST_TOKENS;
		bucket->at_ns = now;
	} else if (earned) {
		bucket->tokens += earned;
		bucket->at_ns += earned * TOKEN_NS;
	}
	if (bucket->tokens <= 0)
		return false;
	__sync_fetch_and_add(&bucket->tokens, -1);
	return true;
}

/* Fills in the current task's spender, and says whether it may report one more event. This is a global function so that
 * the verifier checks it once, and not on each path that leads here. */
__noinline int spend_event(struct spender *spender, u64 now)
{
	/* Linux 6.1 takes no key that the caller's pointer leads to. */
	struct spender own = current_spender();

	if (!spender)
		return false;
	*spender = own;
	return may_report(&own, now);
}

#endif
