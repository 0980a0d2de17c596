/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Drop-behind's part in the kernel: records which process brought a page into the cache, and whether it was used.
 *
 *   page enters the cache     mm_filemap_add_to_page_cache -- brought by this process
 *   read, mapped access       mm_filemap_get_pages, fault, map_pages -- used; again: not ours alone
 *   page written to           writeback_dirty_folio ------- used, by a writer
 *   every 4 MiB of a stream   ----------------------------- EVENT_PASSED --> ring
 *
 * Each page has two bits, in blocks of 64 pages in an LRU table; pages that are not in the table are never dropped. A
 * page may go if the process that brought it in, and no other, has used it, and used it once. An access to a file
 * without such pages costs one test of a word. Without drop-behind, none of this is loaded.
 */
#ifndef BOWWAVE_BEHIND_H
#define BOWWAVE_BEHIND_H

/* Count this much of a read at once (8 MiB). The rest is seen at the read's next batch, which is 15 folios. */
#define REACH_PAGES 2048
/* A second reader that uses this much (2 MiB) while the run does not advance is not in step with it. */
#define AGAIN_PAGES 512
/* The kernel does not report a batch whose last page is still being read. So a run may go on this far (1 MiB) beyond
 * the last page seen, and has passed all pages in between. */
#define GAP_PAGES 256
/* The kernel maps this much around a fault (64 KiB), before and after it has waited for the page. */
#define AROUND_PAGES 16
#define SEVERAL (~0ULL)
/* A second reader of the same process may be this far behind the run (12 MiB). A page that both use in step counts as
 * used once. */
#define FOLLOWER_PAGES 3072
/* Owns a block that changes hands: no process, so none of its pages go. */
#define NOBODY (~0U)
#define BLOCKS_IN_REACH ((REACH_PAGES + GAP_PAGES) / BLOCK_PAGES + 1)

/* Set before loading. */
const volatile bool drops_behind = false;
const volatile u64 least_file_pages = 0;	/* ignore smaller files */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct stream_key);
	__type(value, struct stream);
} streams SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);	/* 256 KiB each: 16 GiB that are not yet passed or released */
	__type(key, struct block_key);
	__type(value, struct block);
} blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << FAILED_INODES_LOG2);
	__type(key, u32);
	__type(value, u32);
} failed_inodes SEC(".maps"); /* hash of inode number -> 1 if write-back of such a file failed */

/* By a hash: the file with blocks in the table, 0 if there is none, SEVERAL if there are several. */
u64 watched_inodes[1 << WATCHED_INODES_LOG2];
/* The epoch: 0 while accesses are not seen, and a new number each time they are. Pages brought in in another epoch may
 * have been used unseen, so they stay. */
u32 looks_behind;

static __always_inline u64 *watched_slot(u64 ino)
{
	u32 slot = (ino * INODE_HASH) >> (64 - WATCHED_INODES_LOG2);

	return &watched_inodes[slot & ((1 << WATCHED_INODES_LOG2) - 1)];
}

/* Whether this process is a bowwave, which reads ahead but uses no page. */
static __always_inline bool reads_ahead_only(u32 tgid)
{
	if (!tgid)
		return false;
	if (tgid == our_tgid)
		return true;
	for (int i = 0; i < DAEMONS; i++)
		if (tgid == daemons[i])
			return true;
	return false;
}

/* Never 0. If two files have the same identity, accesses to both take the slow path. */
static __always_inline u64 identity_of(struct inode *inode)
{
	return (inode->i_ino ^ (u64)inode->i_sb->s_dev << 32) | 1;
}

static __always_inline bool is_watched(struct inode *inode)
{
	u64 watched = *watched_slot(inode->i_ino);

	return watched && (watched == SEVERAL || watched == identity_of(inode));
}

static __always_inline void watch(struct inode *inode)
{
	u64 *slot = watched_slot(inode->i_ino), own = identity_of(inode);
	u64 other = __sync_val_compare_and_swap(slot, 0, own);

	if (other && other != own)
		*slot = SEVERAL;
}

/* The bits of the pages [first, end) in a block. */
static __always_inline u64 bits_in(u64 block, u64 first, u64 end)
{
	u64 begin = block << BLOCK_SHIFT, bits = ~0ULL;

	if (end - begin < BLOCK_PAGES)
		bits = (1ULL << (end - begin)) - 1;
	if (first > begin)
		bits &= ~0ULL << ((first - begin) & (BLOCK_PAGES - 1));
	return bits;
}

static __always_inline void report_passed(struct inode *inode, struct file_key *key, u64 from,
					  u64 to, u8 flags)
{
	struct event *event = begin_event(inode, key, to, to, bpf_ktime_get_ns());

	if (!event)
		return;
	event->kind = EVENT_PASSED;
	event->flags = flags;
	event->mark_first = from;
	event->mark_last = to;
	bpf_ringbuf_submit(event, 0);
}

/* The table may have given an entry to another block since it was looked up. What was set there says nothing about that
 * block's pages, so they stay. The kernel takes an entry out of its list before it fills it anew: if it can still be
 * found, it was ours while we set it. Until the bits go, they may be taken for that block's for a moment: then pages
 * are dropped that might have stayed. */
static __always_inline void keep_if_replaced(struct block *block, struct block_key *key)
{
	if (bpf_map_lookup_elem(&blocks, key) != block)
		block->brought = 0;
}

static __always_inline void bring_into(struct block *block, struct block_key *key, u64 bits, u32 owner,
				       bool is_managed)
{
	u32 other = block->owner, now;

	if (!is_managed) {
		__sync_fetch_and_and(&block->brought, ~bits);
	} else if (owner && other && other != owner) {
		/* Another process owned the block: only the pages brought now can be told to be ours, so the
		 * others stay. If two processes take it over at once, one does; the other's pages stay. */
		if (other == NOBODY ||
		    __sync_val_compare_and_swap(&block->owner, other, NOBODY) != other) {
			__sync_fetch_and_and(&block->brought, ~bits);
			return;
		}
		block->used = 0;
		block->brought = bits;
		__sync_val_compare_and_swap(&block->owner, NOBODY, owner);
	} else {
		__sync_fetch_and_and(&block->used, ~bits);
		__sync_fetch_and_or(&block->brought, bits);
		if (owner) {
			/* Another process may have used or taken the block in between. */
			now = __sync_val_compare_and_swap(&block->owner, other, owner);
			if (now != other && now != owner)
				__sync_fetch_and_and(&block->brought, ~bits);
		}
	}
	keep_if_replaced(block, key);
}

static __always_inline void bring_pages(struct block_key *key, u64 bits, u32 owner, bool is_managed, u32 epoch)
{
	struct block *block = bpf_map_lookup_elem(&blocks, key);

	if (!block || block->epoch != epoch) {
		struct block fresh = { .brought = bits, .owner = owner, .epoch = epoch };

		if (!is_managed ||
		    !bpf_map_update_elem(&blocks, key, &fresh, block ? BPF_ANY : BPF_NOEXIST))
			return;
		/* If the update failed, another processor has added the block meanwhile. */
		block = bpf_map_lookup_elem(&blocks, key);
		if (!block || block->epoch != epoch)
			return;
	}
	bring_into(block, key, bits, owner, is_managed);
}

static __always_inline void use_in(struct block *block, struct block_key *key, u64 bits, u32 tgid, bool in_step)
{
	u32 owner = block->owner;
	u64 before, again;

	if (!owner)
		owner = __sync_val_compare_and_swap(&block->owner, 0, tgid);
	before = __sync_fetch_and_or(&block->used, bits);
	again = owner && owner != tgid ? bits : in_step ? 0 : before & bits;
	if (again)
		__sync_fetch_and_and(&block->brought, ~again);
	keep_if_replaced(block, key);
}

/* This process uses these pages. Pages used before, or owned by another process, stay in the cache from now on. The
 * update is atomic, so if several tasks use a page at once, one of them is the first. */
static __always_inline void use_pages(struct block_key *key, u64 bits, u32 tgid, bool in_step)
{
	struct block *block = bpf_map_lookup_elem(&blocks, key);

	if (block && block->epoch == looks_behind)
		use_in(block, key, bits, tgid, in_step);
}

/* The pages [first, end) of a file, visited block by block with bpf_loop: the verifier checks a callback once, but a
 * loop for each iteration. */
struct range {
	struct block_key block;
	u64 first;
	u64 end;
	u32 tgid;
	u32 epoch;
	bool in_step;
	bool is_managed;
};

static __always_inline struct range range_of(struct file_key *key, u64 first, u64 end, u32 tgid)
{
	return (struct range){
		.block = { .ino = key->ino, .dev = key->dev, .block = first >> BLOCK_SHIFT },
		.first = first,
		.end = end,
		.tgid = tgid,
	};
}

static __always_inline u32 blocks_of(struct range *range)
{
	u64 count = ((range->end - 1) >> BLOCK_SHIFT) - range->block.block + 1;

	if (range->first >= range->end)
		return 0;
	return count < BLOCKS_IN_REACH ? count : BLOCKS_IN_REACH;
}

static long use_next(u64 number, void *data)
{
	struct range *range = data;

	use_pages(&range->block, bits_in(range->block.block, range->first, range->end), range->tgid,
		  range->in_step);
	range->block.block++;
	return 0;
}

static long bring_next(u64 number, void *data)
{
	struct range *range = data;

	bring_pages(&range->block, bits_in(range->block.block, range->first, range->end), range->tgid,
		    range->is_managed, range->epoch);
	range->block.block++;
	return 0;
}

static __always_inline void use_range(struct file_key *key, u64 first, u64 end, u32 tgid, bool in_step)
{
	struct range range = range_of(key, first, end, tgid);

	range.in_step = in_step;
	bpf_loop(blocks_of(&range), use_next, &range, 0);
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_add, struct folio *folio)
{
	struct inode *inode = read_only(folio)->mapping->host;
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	bool is_managed = manages_current_task(), is_ours = tgid && tgid == our_tgid;
	struct range range;
	u64 first, end;
	/* Read this before watching the file: if a new epoch begins in between, these blocks must belong to the old one. */
	u32 epoch = looks_behind;
	struct file_key key;
	bool was_watched;

	if (!inode)
		return 0;
	was_watched = is_watched(inode);
	first = folio->index;
	end = first + pages_of(folio);
	/* Pages that we read ahead belong to whoever uses them first. */
	if (reads_ahead_only(tgid)) {
		is_managed = true;
		tgid = 0;
	}
	if (!was_watched) {
		/* The beginning of the next file of a walk is read before the file is. Other bowwaves read for programs
		 * of their own. */
		if (!is_managed || (!tgid && !(is_ours && epoch)))
			return 0;
		if ((u64)inode->i_size >> PAGE_SHIFT < least_file_pages && end < least_file_pages)
			return 0;
	}
	if (!interest_in(inode, &key))
		return 0;
	if (!was_watched) {
		watch(inode);
		if (!epoch)
			report_passed(inode, &key, first, first, 0);
	}
	if (!epoch)
		return 0;
	range = range_of(&key, first, end, tgid);
	range.is_managed = is_managed;
	range.epoch = epoch;
	bpf_loop(blocks_of(&range), bring_next, &range, 0);
	return 0;
}

/* Follows the process's stream through the file, and notes the pages used. A page that several small reads in a row
 * touch counts as used once. */
static __always_inline void follow_stream(struct inode *inode, u64 first, u64 last, u8 flags)
{
	struct stream_key stream_key = {};
	struct stream *stream, fresh = {};
	u64 from, end, at, around;
	bool is_new = false, is_at_end, goes_on, in_step;
	struct file_key key;

	if (!looks_behind || !is_watched(inode) || !interest_in(inode, &key))
		return;
	stream_key.ino = key.ino;
	stream_key.dev = key.dev;
	stream_key.tgid = bpf_get_current_pid_tgid() >> 32;
	stream_key.written = flags & FLAG_WRITTEN;
	if (reads_ahead_only(stream_key.tgid))
		return;
	if (!manages_current_task())
		flags |= FLAG_FOREGROUND;
	stream = bpf_map_lookup_elem(&streams, &stream_key);
	if (!stream) {
		fresh.first = fresh.until = fresh.reported = fresh.low = fresh.high = first;
		bpf_map_update_elem(&streams, &stream_key, &fresh, BPF_ANY);
		stream = bpf_map_lookup_elem(&streams, &stream_key);
		if (!stream)
			return;
		is_new = true;
	}
	from = first;
	around = flags & FLAG_MMAP ? AROUND_PAGES : 0;
	end = last + 1;
	if (end > first + REACH_PAGES)
		end = first + REACH_PAGES;
	if (first + around >= stream->first && first <= stream->until + GAP_PAGES) {
		from = stream->until;
	} else if (!(flags & FLAG_WRITTEN) && stream->until == stream->high && first < stream->high &&
		   stream->high - first <= FOLLOWER_PAGES) {
		/* A second reader behind the run. It goes on if it continues where it was last; a program that
		 * looks something up again and again does not. The two are in step unless the run has
		 * stopped: a single reader that comes back finds no run that advances. */
		goes_on = first > stream->follower && first <= stream->followed;
		is_at_end = stream->high >= (u64)inode->i_size >> PAGE_SHIFT;
		/* Each batch of a long read reports all pages to come, so decide only at its first batch. */
		if (!goes_on || last != stream->followed_last) {
			in_step = goes_on && stream->again <= AGAIN_PAGES && !is_at_end;
			goes_on = in_step;
			stream->again += end - first;
			stream->followed_last = last;
			stream->follows_in_step = in_step;
		}
		use_range(&key, goes_on ? stream->followed : first, end, stream_key.tgid,
			  stream->follows_in_step);
		/* These never go back, as passed pages stay passed. */
		if (first > stream->follower)
			stream->follower = first;
		if (end > stream->followed)
			stream->followed = end;
		/* The run is over, so who comes to its last access again is not still there. */
		if (is_at_end)
			stream->first = stream->until;
		return;
	} else {
		stream->reported = first;
	}
	stream->first = first;
	if (end > from || from == first)
		stream->until = end;
	if (first < stream->low)
		stream->low = first;
	if (end > stream->high) {
		stream->high = end;
		stream->again = 0;
	}
	use_range(&key, from, end, stream_key.tgid, false);
	/* A writer has passed all of these pages; a reader may still be at the first one. */
	at = flags & FLAG_WRITTEN ? end : first;
	if (is_new || (at > stream->reported && at - stream->reported >= STEP_PAGES)) {
		u64 since = stream->reported;

		stream->reported = at;
		report_passed(inode, &key, since, at, flags);
	}
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(on_dirty, struct folio *folio, struct address_space *mapping)
{
	struct inode *inode;

	if (!mapping)
		return 0;
	inode = read_only(mapping)->host;
	if (inode)
		follow_stream(inode, folio->index, folio->index + pages_of(folio) - 1, FLAG_WRITTEN);
	return 0;
}

/* Pages that could not be written exist only in the page cache. */
SEC("tp_btf/filemap_set_wb_err")
int BPF_PROG(on_write_error, struct address_space *mapping)
{
	struct inode *inode = read_only(mapping)->host;
	u32 slot, *failed;

	if (!inode)
		return 0;
	slot = (inode->i_ino * INODE_HASH) >> (64 - FAILED_INODES_LOG2);
	failed = bpf_map_lookup_elem(&failed_inodes, &slot);
	if (failed)
		*failed = 1;
	return 0;
}

#endif
