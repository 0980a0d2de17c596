/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Watches the block layer: how much bowwave has in flight on each disk, and how long other readers wait.
 *
 *   from 6.5    block_io_start ----> started ----> block_io_done
 *   before      block_getrq -------> started ----> block_rq_complete
 *
 * Both ways begin in the context of the reading process, so bowwave's reads can be told from others. block_getrq comes
 * before there is a request, so there a read is identified by its bio.
 */
#ifndef BOWWAVE_BLOCK_H
#define BOWWAVE_BLOCK_H

#include "disk.bpf.h"

#define SECTOR_SHIFT 9
/* The bio of a request is behind those merged to its front; look through this many. */
#define BIOS_BEFORE 64
/* Tail pages of large folios hold a pointer to the head page or, from 7.1 on, a mask that leads to it. Masks are higher
 * than any address of a page's description. */
#define LEAST_MASK 0xffffff0000000000ULL

/* Set before loading: identify reads by their bio, otherwise by their request. */
const volatile bool knows_reads_by_bio = false;

struct started {
	u64 at_ns;
	struct file_key file;	/* the file that it reads; dev is 0 if it reads none */
	u32 bytes;
	u32 slot;
	bool is_ours;
	bool is_seek;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct started);
} requests SEC(".maps"); /* request or bio -> its start */

struct disk_stats disk_stats[DISK_SLOTS];
u64 next_sector[DISK_SLOTS];	/* the end of the last read */

static __always_inline struct page *head_of(struct page *page)
{
	unsigned long info;

	if (bpf_core_field_exists(page->compound_info))
		info = BPF_CORE_READ(page, compound_info);
	else
		info = BPF_CORE_READ((struct page___before_7_1 *)page, compound_head);
	if (!(info & 1))
		return page;
	return (void *)(info >= LEAST_MASK ? (unsigned long)page & info : info - 1);
}

/* Fills in the file whose page is read first, if there is one. */
static __always_inline void file_of(struct bio *bio, struct file_key *key)
{
	struct page *page = BPF_CORE_READ(bio, bi_io_vec, bv_page);
	struct address_space *mapping;
	struct inode *inode;

	if (!page)
		return;
	mapping = BPF_CORE_READ((struct folio *)head_of(page), mapping);
	/* The low bits mark anonymous memory, as in direct I/O. */
	if (!mapping || ((unsigned long)mapping & 3))
		return;
	inode = BPF_CORE_READ(mapping, host);
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
}

/* Whether the file's reader is managed. Ask when a read is done: a new reader's first read starts before user space has
 * heard of it. */
static __always_inline bool is_managed(struct file_key *key)
{
	struct file_state *state = bpf_map_lookup_elem(&files, key);

	return state && state->managed;
}

/* Forgets a read that was merged into another. There is no event for its end, so its bytes no longer count as in
 * flight. */
static __always_inline void forget_read(u64 key)
{
	struct started *started = bpf_map_lookup_elem(&requests, &key);

	if (!started)
		return;
	if (started->is_ours)
		__sync_fetch_and_add(&disk_stats[started->slot & (DISK_SLOTS - 1)].our_bytes_in_flight,
				     -(s64)started->bytes);
	bpf_map_delete_elem(&requests, &key);
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_merge, struct request *request)
{
	forget_read(knows_reads_by_bio ? (u64)BPF_CORE_READ(request, bio) : (u64)request);
	return 0;
}

static __always_inline u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

static __always_inline int start_read(u64 key, struct gendisk *disk, u64 sector, u32 bytes, struct bio *bio)
{
	struct started started = {};
	struct disk_stats *stats;
	u32 dev = number_of_disk(disk), *found = bpf_map_lookup_elem(&disks, &dev), slot;

	if (!found)
		return 0;
	slot = *found & (DISK_SLOTS - 1);
	started.at_ns = bpf_ktime_get_ns();
	started.bytes = bytes;
	started.slot = slot;
	started.is_seek = distance(sector, next_sector[slot]) > SEEK_BYTES >> SECTOR_SHIFT;
	next_sector[slot] = sector + (bytes >> SECTOR_SHIFT);
	started.is_ours = (bpf_get_current_pid_tgid() >> 32) == our_tgid;
	if (!started.is_ours)
		file_of(bio, &started.file);
	if (bpf_map_update_elem(&requests, &key, &started, BPF_ANY))
		return 0;
	stats = &disk_stats[slot];
	if (started.is_ours) {
		__sync_fetch_and_add(&stats->our_reads, 1);
		__sync_fetch_and_add(&stats->our_bytes, started.bytes);
		__sync_fetch_and_add(&stats->our_bytes_in_flight, (s64)started.bytes);
	}
	return 0;
}

/* Returns whether the start of this read was seen. */
static __always_inline bool end_read(u64 key)
{
	struct started *started = bpf_map_lookup_elem(&requests, &key);
	struct disk_stats *stats;
	u64 latency;
	u32 slot;

	if (!started)
		return false;
	slot = started->slot & (DISK_SLOTS - 1);
	stats = &disk_stats[slot];
	latency = bpf_ktime_get_ns() - started->at_ns;
	__sync_fetch_and_add(&stats->bytes, started->bytes);
	if (started->is_ours) {
		__sync_fetch_and_add(&stats->our_ns, latency);
		__sync_fetch_and_add(&stats->our_bytes_in_flight, -(s64)started->bytes);
	} else if (is_managed(&started->file)) {
		__sync_fetch_and_add(&stats->managed_reads, 1);
		__sync_fetch_and_add(&stats->managed_ns, latency);
	} else {
		__sync_fetch_and_add(&stats->foreground_reads, 1);
		__sync_fetch_and_add(&stats->foreground_ns, latency);
	}
	if (!started->is_ours && started->is_seek) {
		__sync_fetch_and_add(&stats->seek_reads, 1);
		__sync_fetch_and_add(&stats->seek_ns, latency);
	}
	bpf_map_delete_elem(&requests, &key);
	return true;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(on_io_start, struct request *request)
{
	forget_read((u64)request);
	if (operation_of(request) != REQ_OP_READ)
		return 0;
	return start_read((u64)request, BPF_CORE_READ(request, q, disk), BPF_CORE_READ(request, __sector),
			  BPF_CORE_READ(request, __data_len), BPF_CORE_READ(request, bio));
}

SEC("tp_btf/block_io_done")
int BPF_PROG(on_io_done, struct request *request)
{
	end_read((u64)request);
	return 0;
}

SEC("tp_btf/block_getrq")
int BPF_PROG(on_getrq, struct bio *bio)
{
	forget_read((u64)bio);
	if ((BPF_CORE_READ(bio, bi_opf) & REQ_OP_MASK) != REQ_OP_READ)
		return 0;
	return start_read((u64)bio, BPF_CORE_READ(bio, bi_bdev, bd_disk), BPF_CORE_READ(bio, bi_iter.bi_sector),
			  BPF_CORE_READ(bio, bi_iter.bi_size), bio);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request)
{
	struct bio *bio = BPF_CORE_READ(request, bio);

	if (operation_of(request) != REQ_OP_READ)
		return 0;
	for (int i = 0; i < BIOS_BEFORE && bio; i++) {
		if (end_read((u64)bio))
			break;
		bio = BPF_CORE_READ(bio, bi_next);
	}
	return 0;
}

#endif
