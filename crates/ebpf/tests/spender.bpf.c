// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Notes whose budget of events a task would use that gives itself a name. */
#include "observe.bpf.c"

struct named {
	char name[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct named);
	__type(value, struct spender);
} spenders SEC(".maps");

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *name)
{
	struct spender spender = current_spender();
	struct named named = {};

	if (bpf_probe_read_kernel_str(&named.name, sizeof(named.name), name) > 3 && named.name[0] == 'b' &&
	    named.name[1] == 'w' && named.name[2] == '-')
		bpf_map_update_elem(&spenders, &named, &spender, BPF_ANY);
	return 0;
}
