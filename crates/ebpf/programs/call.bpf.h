/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which system call or fault a thread is in, and where it reads.
 *
 * The kernel numbers the reading calls of a thread (`ioac.syscr`), and its faults (`min_flt + maj_flt`). These numbers
 * grow when a call or fault ends. So events with the same number belong to one call: a long read has several batches,
 * and a fault that waits is tried again.
 */
#ifndef BOWWAVE_CALL_H
#define BOWWAVE_CALL_H

#include "file.bpf.h"

#define PF_EXITING 0x4
#define PF_IO_WORKER 0x10
#define PF_KTHREAD 0x200000
/* System calls of x86-64. */
enum {
	CALL_READ = 0,
	CALL_WRITE = 1,
	CALL_PREAD64 = 17,
	CALL_PWRITE64 = 18,
	CALL_READV = 19,
	CALL_WRITEV = 20,
	CALL_SENDFILE = 40,
	CALL_SPLICE = 275,
	CALL_PREADV = 295,
	CALL_PWRITEV = 296,
	CALL_COPY_FILE_RANGE = 326,
	CALL_PREADV2 = 327,
	CALL_PWRITEV2 = 328,
};

/* The number of the reading call that the thread is in. 0 without CONFIG_TASK_IO_ACCOUNTING: then only the pages tell
 * calls apart. */
static __always_inline u64 call_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->ioac.syscr) ? task->ioac.syscr : 0;
}

/* The number of the fault that the thread is in, or else its next one. */
static __always_inline u64 fault_of(struct task_struct *task)
{
	return task->min_flt + task->maj_flt + 1;
}

static __always_inline u64 system_call_of(struct task_struct *task)
{
	struct pt_regs *registers = (void *)bpf_task_pt_regs(task);

	return registers->orig_ax;
}

/* Whether the thread's system call reads a file, and there is one thread that waits for it. */
static __always_inline bool is_in_reading_call(struct task_struct *task)
{
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return false;
	switch (system_call_of(task)) {
	case CALL_READ:
	case CALL_PREAD64:
	case CALL_READV:
	case CALL_PREADV:
	case CALL_PREADV2:
	case CALL_SENDFILE:
	case CALL_SPLICE:
	case CALL_COPY_FILE_RANGE:
		return true;
	default:
		return false;
	}
}

static __always_inline bool is_in_writing_call(struct task_struct *task)
{
	if (task->flags & PF_KTHREAD)
		return false;
	switch (system_call_of(task)) {
	case CALL_WRITE:
	case CALL_PWRITE64:
	case CALL_WRITEV:
	case CALL_PWRITEV:
	case CALL_PWRITEV2:
		return true;
	default:
		return false;
	}
}

/* Whether the call reads one file through a pipe of 64 KiB, from front to back. */
static __always_inline bool is_in_piping_call(struct task_struct *task)
{
	u64 made = system_call_of(task);

	return made == CALL_SENDFILE || made == CALL_COPY_FILE_RANGE;
}

/* The open file that the thread's system call reads; 0 if there is none. */
static __always_inline struct file *file_read_by(struct task_struct *task)
{
	struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
	u64 number = registers->di;
	struct file **all, *file = 0;

	switch (registers->orig_ax) {
	case CALL_SENDFILE:
		number = registers->si;
		/* fall through */
	case CALL_READ:
	case CALL_PREAD64:
	case CALL_READV:
	case CALL_PREADV:
	case CALL_PREADV2:
	case CALL_SPLICE:
	case CALL_COPY_FILE_RANGE:
		break;
	default:
		return 0;
	}
	number = (u32)number;
	all = task->files->fdt->fd;
	if (number >= task->files->fdt->max_fds ||
	    bpf_probe_read_kernel(&file, sizeof(file), all + number))
		return 0;
	return file;
}

/* Whether an open file of inode `opened` is read from `inode`: it is that file, or lies on an overlay. */
static __always_inline bool shows(struct inode *opened, struct inode *inode)
{
	return opened == inode || BPF_CORE_READ(opened, i_sb, s_magic) == OVERLAYFS_MAGIC;
}

/* The position at which the thread's system call begins to read this file; negative if it is not known. */
static __always_inline s64 position_of(struct task_struct *task, struct inode *inode)
{
	struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
	u64 made = registers->orig_ax, given = 0;
	s64 position = -1;
	struct file *file;

	if (made == CALL_PREAD64 || made == CALL_PREADV || made == CALL_PREADV2)
		position = registers->r10;
	if (position >= 0 || made == CALL_PREAD64 || made == CALL_PREADV)
		return position;
	if (made == CALL_SENDFILE)
		given = registers->dx;
	else if (made == CALL_COPY_FILE_RANGE || made == CALL_SPLICE)
		given = registers->si;
	if (given)
		return bpf_probe_read_user(&position, sizeof(position), (void *)given) ? -1 : position;
	/* The open file's position changes when the call ends. */
	file = file_read_by(task);
	return file && shows(BPF_CORE_READ(file, f_inode), inode) ? BPF_CORE_READ(file, f_pos) : -1;
}

/* The first page of the call that has got to page `at`. If a call has to wait for a page, the kernel does not report
 * the pages before it. */
static __always_inline u64 start_of(struct task_struct *task, struct inode *inode, u64 at)
{
	s64 position = at ? position_of(task, inode) : -1;

	return position >= 0 && position >> PAGE_SHIFT < at ? position >> PAGE_SHIFT : at;
}

#endif
