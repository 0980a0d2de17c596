/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of the block layer, and the disks that they are for. */
#ifndef BOWWAVE_DISK_H
#define BOWWAVE_DISK_H

#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1

static __always_inline u32 operation_of(struct request *request)
{
	return BPF_CORE_READ(request, cmd_flags) & REQ_OP_MASK;
}

/* Its number in the kernel's encoding. */
static __always_inline u32 number_of_disk(struct gendisk *disk)
{
	return (BPF_CORE_READ(disk, major) << 20) | BPF_CORE_READ(disk, first_minor);
}

#endif
