/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BOWWAVE_LEASE_H
#define BOWWAVE_LEASE_H

#define F_RDLCK 0

/* Whether a process holds a write lease on the file with these locks (`i_flctx`). If user space opened the file, that
 * would break the lease. Takes no lock of the kernel's and looks at one entry, however many locks there are: nobody
 * else has a lease beside a write lease. */
static __always_inline bool has_write_lease(struct file_lock_context *context)
{
	unsigned long leases, first;

	if (!context)
		return false;
	leases = (unsigned long)context + bpf_core_field_offset(struct file_lock_context, flc_lease);
	first = (unsigned long)BPF_CORE_READ(context, flc_lease.next);
	if (first == leases)
		return false;
	if (bpf_core_type_exists(struct file_lock_core)) {
		first -= bpf_core_field_offset(struct file_lock_core, flc_list);
		return BPF_CORE_READ((struct file_lock_core *)first, flc_type) != F_RDLCK;
	}
	first -= bpf_core_field_offset(struct file_lock, fl_list);
	return BPF_CORE_READ((struct file_lock *)first, fl_type) != F_RDLCK;
}

#endif
