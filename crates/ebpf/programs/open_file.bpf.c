// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tells what programs have advised for an open file, and whether somebody holds a lease on it. No system call tells the
 * first. Of the second, F_GETLEASE tells only the caller's own, and /proc/locks lists all locks of all users. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "interface.h"
#include "lease.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Looks at a descriptor of the process that runs this. It may be a path only (O_PATH), which breaks no lease. */
SEC("syscall")
int look_at(struct open_file *wanted)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct file **all = BPF_CORE_READ(task, files, fdt, fd), *file = 0;

	if (wanted->number >= BPF_CORE_READ(task, files, fdt, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), all + wanted->number) || !file)
		return 0;
	wanted->mode = BPF_CORE_READ(file, f_mode);
	wanted->window_pages = BPF_CORE_READ(file, f_ra.ra_pages);
	wanted->is_leased = has_write_lease(BPF_CORE_READ(file, f_inode, i_flctx));
	wanted->was_found = 1;
	return 0;
}
