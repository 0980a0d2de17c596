/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The few kernel types that our programs read, reduced by hand, so that building needs no BTF of the build machine.
 * Only the names matter: CO-RE relocates every offset when the object is loaded. */
#ifndef BOWWAVE_KERNEL_H
#define BOWWAVE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef u32 dev_t;

enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_AVAIL_DATA = 0 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct backing_dev_info {
	unsigned long ra_pages;
};

struct super_block {
	dev_t s_dev;
	unsigned long s_magic;
	struct backing_dev_info *s_bdi;
};

struct address_space;

struct list_head {
	struct list_head *next;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct file_lock_context {
	struct list_head flc_lease;
};

struct file_lock_core {
	struct list_head flc_list;
	unsigned char flc_type;
};

/* Before 6.9. */
struct file_lock {
	struct list_head fl_list;
	unsigned char fl_type;
};

struct inode {
	u16 i_mode;
	struct file_lock_context *i_flctx;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	s64 i_size;
	u32 i_generation;
	struct hlist_head i_dentry;
};

/* From 6.4 on. */
struct bpf_iter_num {
	unsigned long long __opaque[1];
};

struct xa_node {
	unsigned char shift;
	void *slots[64];
};

struct xarray {
	void *xa_head;
};

struct address_space {
	struct inode *host;
	struct xarray i_pages;
};

struct file_ra_state {
	unsigned long start;
	unsigned int size;
	unsigned int ra_pages;
	s64 prev_pos;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct inode *d_inode;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct path {
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	unsigned int f_flags;
	s64 f_pos;
	struct path f_path;
	struct inode *f_inode;
	struct address_space *f_mapping;
	struct file_ra_state f_ra;
};

struct readahead_control {
	struct address_space *mapping;
	struct file_ra_state *ra;
	unsigned long _index;
};

struct kiocb {
	struct file *ki_filp;
	s64 ki_pos;
};

struct iov_iter;
struct pipe_inode_info;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
};

enum pageflags {
	PG_head = 6,
};

typedef struct {
	unsigned long f;
} memdesc_flags_t;

struct folio {
	memdesc_flags_t flags;
	struct address_space *mapping;
	unsigned long index;
	unsigned int _nr_pages;
};

/* Up to 6.17. CO-RE ignores what follows three underscores in a name. */
struct folio___before_6_18 {
	unsigned long flags;
	unsigned int _folio_nr_pages;
};

struct page {
	unsigned long compound_info;
};

/* Up to 7.0. */
struct page___before_7_1 {
	unsigned long compound_head;
};

struct bio_vec {
	struct page *bv_page;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bvec_iter {
	u64 bi_sector;
	unsigned int bi_size;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	u32 bi_opf;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* Its fields exist with CONFIG_TASK_IO_ACCOUNTING. */
struct task_io_accounting {
	u64 syscr;
};

struct pt_regs {
	unsigned long r10;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};

typedef struct {
	u32 val;
} kuid_t;

/* Of a node that does not belong to root, or whose attributes were changed. */
struct kernfs_iattrs {
	kuid_t ia_uid;
};

struct kernfs_node {
	u64 id;
	struct kernfs_iattrs *iattr;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[1];
};

struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};

struct cred {
	kuid_t uid;
	kuid_t euid;
	struct user_namespace *user_ns;
};

struct pid_namespace {
	struct user_namespace *user_ns;
};

struct upid {
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int in_iowait : 1;
	unsigned long min_flt;
	unsigned long maj_flt;
	char comm[16];
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	unsigned long long start_time;
	struct pid *thread_pid;
	const struct cred *cred;
	struct task_io_accounting ioac;
	struct files_struct *files;
	struct css_set *cgroups;
	struct signal_struct *signal;
};

#pragma clang attribute pop

#endif
