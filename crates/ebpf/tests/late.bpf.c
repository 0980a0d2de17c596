// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Updates entries of drop-behind's tables that have become another block's since they were looked up. */
#include "observe.bpf.c"

struct late_update {
	struct block other;	/* in: the new block; out: the same after the late update */
	u64 bits;
	u32 owner_before;
	u32 owner;
	u32 brings;		/* the update is that of a page brought in, or else of a use */
	u32 is_late;		/* in: the other block gets the entry first */
};

SEC("syscall")
int update_late(struct late_update *late)
{
	struct block_key key = { .ino = 1 }, others = { .ino = 2 };
	struct block fresh = { .owner = late->owner_before }, successor = late->other;
	struct block *block, *other;

	bpf_map_update_elem(&blocks, &key, &fresh, BPF_ANY);
	block = bpf_map_lookup_elem(&blocks, &key);
	if (!block)
		return 0;
	if (late->is_late) {
		/* A processor's next new entry is the one that it has freed last. */
		bpf_map_delete_elem(&blocks, &key);
		bpf_map_update_elem(&blocks, &others, &successor, BPF_ANY);
	}
	if (late->brings)
		bring_into(block, &key, late->bits, late->owner, true);
	else
		use_in(block, &key, late->bits, late->owner, false);
	other = bpf_map_lookup_elem(&blocks, late->is_late ? &others : &key);
	if (!other)
		return 0;
	late->other = *other;
	bpf_map_delete_elem(&blocks, late->is_late ? &others : &key);
	return other == block;
}
